//! Which branch a save goes to, and whether it may go there. It never goes to the main branch.

use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash, User, is_working_branch, time::utc};
use crate::repo::store::{CheckInInfo, Store};

use super::journal::Saved;

/// How many working branches one checkout may go through.
const BRANCHES_MAX: u32 = 1_000;

/// Returns the working branch of a checkout that stands on `parent`: the branch it is on, if it is one of this user's,
/// or else a new one named after user and checkout.
///
/// # Errors
/// Those of reading the repository; `Invalid` for a user whose name no branch can carry.
pub fn working_branch(store: &Store, parent: &CheckInInfo, user: &User, checkout_id: &str) -> Result<Branch> {
    if is_working_branch(&parent.branch, user) && !store.is_main_branch(&parent.branch)? {
        return Branch::parse(&parent.branch);
    }
    for n in 0..BRANCHES_MAX {
        let branch = Branch::parse(&format!("{}{}", prefix(user), digits(checkout_id, n)))?;
        if !store.has_branch(&branch)? && !store.is_main_branch(branch.as_str())? {
            return Ok(branch);
        }
    }
    Err(Error::new(Kind::Exists, format!("`{user}` has too many working branches from this checkout"))
        .with_hint("Open another checkout for the next task."))
}

/// Refuses a save whose parent must not have a child of it: a check-in that was moved, closed, made private,
/// superseded, or dated later than now.
///
/// # Errors
/// `Refused`, `Closed` or `WouldFork`, naming the check-in.
pub fn check_parent(parent: &CheckInInfo, user: &User, saved: &[Saved], now: f64) -> Result<()> {
    let short = parent.hash.short();
    if let Some(saved) = saved.iter().find(|s| s.hash == parent.hash && s.branch != parent.branch) {
        let what =
            format!("check-in {short} was saved on `{}` and is now on `{}`", saved.branch, parent.branch);
        return Err(Error::new(Kind::Refused, what).with_hint(format!(
            "Nothing is saved on `{}` from here. Have the check-in moved back, or open a new checkout for the next task.",
            parent.branch
        )));
    }
    if parent.private {
        return Err(Error::new(Kind::Refused, format!("the parent check-in {short} is private")).with_hint(
            "Open the checkout at a public check-in: a public one must not name a private parent.",
        ));
    }
    if is_working_branch(&parent.branch, user) {
        if parent.closed {
            return Err(Error::new(Kind::Closed, format!("the branch `{}` is closed", parent.branch)).with_hint(
                "Your files are as they were. Have the branch reopened, or carry the change to another checkout.",
            ));
        }
        if !parent.leaf {
            let what =
                format!("`{}` has a newer check-in than {short}, so a save would fork it", parent.branch);
            return Err(Error::new(Kind::WouldFork, what).with_hint(
                "Your files are as they were. Update the checkout to the newest check-in of the branch, then test and \
                 save again.",
            ));
        }
    }
    if parent.julian > now {
        let what = format!(
            "the parent check-in {short} is dated {}, and the clock here says {}",
            parent.time,
            utc(now)
        );
        return Err(Error::new(Kind::Refused, what).with_hint(
            "Nothing was saved. Have the clock corrected, or save when it has passed that time.",
        ));
    }
    Ok(())
}

fn prefix(user: &User) -> String {
    format!("agent/{user}-")
}

/// Returns the digits of the checkout's branch number `n`. The first branch has the digits of the checkout; those of
/// a later one follow from them, so that they are the same each time.
fn digits(checkout_id: &str, n: u32) -> String {
    if n == 0 {
        return checkout_id.to_owned();
    }
    Hash::of(format!("{checkout_id} {n}").as_bytes()).as_str()[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_branches_have_other_digits_that_stay_the_same() {
        assert_eq!(digits("0a1b2c3d", 0), "0a1b2c3d");
        assert_ne!(digits("0a1b2c3d", 1), digits("0a1b2c3d", 2));
        assert_eq!(digits("0a1b2c3d", 1), digits("0a1b2c3d", 1));
    }
}
