//! Which check-ins of a bundle land on a branch, and whether each is fit to be there: judged before anything is written.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::call::Call;
use crate::bundle::Bundle;
use crate::bundle::{BundledCheckIn, Contents, Import, Imported};
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash};
use crate::repo::Store;
use crate::repo::store::CheckInInfo;
use crate::work::Comment;

/// How many landed check-ins are listed.
const LANDED_MAX: usize = 50;

/// What to do about a `have` that is none.
pub(super) const HAVE: &str =
    "Give in `have` the full hash of a check-in that you hold and the server has, all 40 or 64 hex digits.";

/// What lands on a branch, within a result.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Landing {
    branch: String,
    new: usize,
    shown: usize,
    of: usize,
    pub landed: Vec<LandedCheckIn>,
    /// How many artifacts came. Absent before the import.
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<ImportedArtifacts>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct LandedCheckIn {
    pub checkin: Hash,
    title: String,
    new: bool,
    /// Its page on the server. Absent before it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Who brought it. Absent before it has landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<LandedReceipt>,
}

/// Whom the last repository on the way names. It is null if this repository cannot know.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum LandedReceipt {
    Of { user: String, time: String },
    Unknown(()),
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ImportedArtifacts {
    new: usize,
    present: usize,
}

/// A bundle that this caller may publish.
pub(super) struct IncomingBundle {
    pub bundle: Bundle,
    pub import: Import,
    branch: Branch,
    /// Its check-ins on the branch, the oldest first, and whether each is new here.
    pub landed: Vec<(BundledCheckIn, bool)>,
    /// Whether a new one follows a check-in of the branch that is here.
    pub continues: bool,
}

impl IncomingBundle {
    pub fn of(
        call: &Call<'_>,
        bundle: &Bundle,
        import: &Import,
        branch: &Branch,
        have: Option<Hash>,
    ) -> Result<Self> {
        let contents = call.repository().check_bundle(bundle, import)?;
        let landed = landing(call.store(), contents, branch)?;
        let comes = |hash: &Hash| landed.iter().any(|(check_in, _)| check_in.hash == *hash);
        if let Some(have) = have.filter(|have| !comes(have)) {
            is_here(call, have)?;
        }
        let parents = landed.iter().filter(|(_, is_new)| *is_new).filter_map(|(c, _)| c.parents.first());
        let mut continues = false;
        for parent in parents {
            continues |= known(call.store(), parent)?.is_some_and(|info| info.branch == branch.as_str());
        }
        Ok(Self { bundle: bundle.clone(), import: import.clone(), branch: branch.clone(), landed, continues })
    }

    pub fn new_ones(&self) -> usize {
        self.landed.iter().filter(|(_, is_new)| *is_new).count()
    }

    /// What lands. `imported` is given if it has landed.
    pub fn landing(&self, imported: Option<&Imported>) -> Landing {
        let listed = self.landed.iter().rev().take(LANDED_MAX).map(|(check_in, is_new)| LandedCheckIn {
            checkin: check_in.hash,
            title: check_in.comment.lines().next().unwrap_or_default().to_owned(),
            new: *is_new,
            link: None,
            receipt: None,
        });
        let landed: Vec<_> = listed.collect();
        Landing {
            branch: self.branch.to_string(),
            new: self.new_ones(),
            shown: landed.len(),
            of: self.landed.len(),
            landed,
            artifacts: imported.map(|i| ImportedArtifacts { new: i.artifacts, present: i.present }),
        }
    }
}

/// Refuses a `have` that is not here for everyone.
pub(super) fn is_here(call: &Call<'_>, have: Hash) -> Result<()> {
    match known(call.store(), &have)? {
        Some(info) if !info.private => Ok(()),
        _ => {
            Err(Error::new(Kind::NotFound, format!("field `have`: no check-in `{have}` is here"))
                .with_hint(HAVE))
        }
    }
}

/// The check-ins of a bundle on `branch`, each fit to be there, and whether it is new.
fn landing(store: &Store, contents: Contents, branch: &Branch) -> Result<Vec<(BundledCheckIn, bool)>> {
    let mut branches: HashMap<Hash, String> = HashMap::new();
    let mut landed = Vec::new();
    for check_in in contents.check_ins {
        let (on, is_new) = match known(store, &check_in.hash)? {
            Some(here) => (here.branch, false),
            None => (fit(store, &check_in, branch, &branches)?, true),
        };
        branches.insert(check_in.hash, on.clone());
        if on == branch.as_str() {
            landed.push((check_in, is_new));
        }
    }
    if landed.is_empty() {
        return Err(Error::new(Kind::Invalid, format!("the bundle holds no check-in on `{branch}`"))
            .with_hint("Name in `branch` the branch that you bundled."));
    }
    Ok(landed)
}

/// Judges a new check-in. Returns its branch.
fn fit(
    store: &Store,
    check_in: &BundledCheckIn,
    branch: &Branch,
    before: &HashMap<Hash, String>,
) -> Result<String> {
    let short = check_in.hash.short();
    Comment::parse(&check_in.comment).map_err(|e| {
        let hint = e.hint().unwrap_or_default().to_owned();
        Error::new(e.kind(), format!("check-in {short}: {e}"))
            .with_hint(format!("{hint} Commit again in your clone with such a comment, and bundle that."))
            .caused_by(e)
    })?;
    let first = check_in.parents.first().map(|parent| known(store, parent)).transpose()?.flatten();
    let inherited = || check_in.parents.first().and_then(|parent| before.get(parent)).cloned();
    let on = check_in.branch.clone().or_else(inherited).or_else(|| first.as_ref().map(|p| p.branch.clone()));
    let on = on.map_or_else(|| store.main_branch(), Ok)?;
    if on != branch.as_str() {
        return Err(Error::new(
            Kind::Denied,
            format!("check-in {short} is on branch `{on}` and not on `{branch}`"),
        )
        .with_hint("Bundle only check-ins of your own on one branch of your own, and name it in `branch`."));
    }
    if let Some(parent) = first.filter(|parent| parent.branch == on) {
        open(&parent, branch)?;
    }
    Ok(on)
}

/// Refuses a check-in that would follow a closed branch, or fork one.
fn open(parent: &CheckInInfo, branch: &Branch) -> Result<()> {
    if parent.closed {
        return Err(Error::new(Kind::Closed, format!("the branch `{branch}` is closed"))
            .with_hint("Commit on another branch, or have this one reopened."));
    }
    if !parent.leaf {
        let what = format!(
            "`{branch}` has a newer check-in than {}, so this one would fork it",
            parent.hash.short()
        );
        return Err(Error::new(Kind::WouldFork, what).with_hint(
            "Fetch what is newer with `have`, update your clone to it (`fossil update`), then commit and bundle again.",
        ));
    }
    Ok(())
}

fn known(store: &Store, hash: &Hash) -> Result<Option<CheckInInfo>> {
    match store.check_in(hash) {
        Ok(info) => Ok(Some(info)),
        Err(e) if e.kind() == Kind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
