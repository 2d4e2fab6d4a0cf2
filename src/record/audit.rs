//! Verdicts of logins on check-ins. The tag `audited` has the newest verdict, and a tag `audited-LOGIN` keeps each
//! login's own, because a check-in holds one value for each tag.
//!
//! The caller must ask whether a login may give verdicts ([`Store::capabilities`](crate::repo::Store::capabilities):
//! `i`).

use std::fmt;

use super::tags::Tags;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TagName, User};
use crate::repo::Repository;
use crate::repo::store::hash;

/// The tag that every verdict sets.
const AUDITED: &str = "audited";

/// Whether the login `?1` made the check-in `event.objid` or sent it here. `event.user` is the manifest's word, which no
/// tag changes. A receipt tells of a sender only where it has an address: that of a pull names who pulled.
const IS_OWN: &str = "(event.user IS ?1 OR EXISTS(
    SELECT 1 FROM blob AS o JOIN rcvfrom USING(rcvid) JOIN user AS s USING(uid)
    WHERE o.rid=event.objid AND s.login=?1 AND rcvfrom.ipaddr GLOB '[0-9a-f:]*'
      AND rcvfrom.ipaddr NOT GLOB '*[^0-9a-f:.]*'))";

/// The verdicts of a repository.
///
/// ```
/// use ocx::{name::User, record::{Audits, Verdict}, repo::{NewRepository, Repository}};
/// let folder = tempfile::tempdir()?;
/// let ann = User::parse("ann")?;
/// let repository = Repository::create(&folder.path().join("r.fossil"), &NewRepository { user: ann.clone() })?;
/// let (audits, tip) = (Audits::of(&repository), repository.store().resolve("trunk")?);
/// assert!(audits.took_part(&tip, &ann)?); // it is ann's own
/// assert_eq!(audits.verdict(&tip, &ann)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Audits {
    repository: Repository,
}

/// What a login says of a check-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it passes.
    pub pass: bool,
    /// Why, in one line.
    pub note: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", if self.pass { "pass" } else { "fail" }, self.note)
    }
}

impl Audits {
    /// The verdicts of `repository`.
    #[must_use]
    pub fn of(repository: &Repository) -> Self {
        Self { repository: repository.clone() }
    }

    /// Returns the login's verdict on a check-in, as its tag's value, and the control artifact that set it.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the repository holds no such check-in.
    pub fn verdict(&self, check_in: &Hash, user: &User) -> Result<Option<(String, Hash)>> {
        let own = own_tag(user)?;
        let tags = Tags::of(&self.repository).list(check_in)?.into_iter();
        // A tag that somebody else set under this name is not this login's verdict.
        let mut by_user = tags.filter(|t| {
            t.symbolic
                && t.name == own.as_str()
                && t.inherited_from.is_none()
                && t.user.as_deref() == Some(user.as_str())
        });
        Ok(by_user.next().and_then(|t| Some((t.value.unwrap_or_default(), t.source?))))
    }

    /// Whether the login took part in the run that made the check-in. That is so if the check-in is its own, or is on
    /// a working branch (`agent/LOGIN-XXXXXXXX`) whose run holds check-ins by it. A check-in is of the login that its
    /// manifest names, and of the one that sent it to this server; a tag `user` makes it nobody else's.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the repository holds no such check-in.
    pub fn took_part(&self, check_in: &Hash, user: &User) -> Result<bool> {
        let info = self.repository.store().check_in(check_in)?;
        if self.is_own(check_in, user)? {
            return Ok(true);
        }
        if !info.branch.starts_with("agent/") {
            return Ok(false);
        }
        // The digits after the last dash are those of the run's checkout, whoever works in it.
        let run = info.branch.rsplit_once('-').map_or(info.branch.as_str(), |(_, digits)| digits);
        self.repository.store().ask(|db| {
            let sql = format!(
                "SELECT 1 FROM tagxref AS b JOIN event ON objid=b.rid
                 WHERE b.tagid=8 AND b.tagtype>0 AND type='ci' AND {IS_OWN}
                   AND (b.value=?2 OR (b.value GLOB 'agent/*' AND substr(b.value, -length(?3)-1)='-'||?3))"
            );
            db.prepare_cached(&sql)?.exists([user.as_str(), info.branch.as_str(), run])
        })
    }

    /// Returns the public check-ins that wait for the login's verdict, the newest first. They are of runs that the
    /// login took no part in, and have no verdict by it. A check-in without parent and files is left out.
    ///
    /// # Errors
    /// As for any read: [`Kind::Busy`], [`Kind::Corrupt`]; [`Kind::Invalid`] for a login whose name no tag can carry.
    pub fn waiting(&self, user: &User) -> Result<Vec<Hash>> {
        let own = own_tag(user)?;
        self.repository.store().ask(|db| {
            let sql = format!(
                "WITH own(branch) AS (
                   SELECT DISTINCT b.value FROM tagxref AS b JOIN event ON objid=b.rid
                   WHERE b.tagid=8 AND b.tagtype>0 AND type='ci' AND {IS_OWN} AND b.value GLOB 'agent/*')
                 SELECT uuid FROM event JOIN blob ON blob.rid=objid
                 WHERE type='ci' AND NOT {IS_OWN}
                   AND NOT EXISTS(SELECT 1 FROM private WHERE private.rid=objid)
                   AND (EXISTS(SELECT 1 FROM plink WHERE cid=objid) OR EXISTS(SELECT 1 FROM mlink WHERE mid=objid))
                   AND NOT EXISTS(SELECT 1 FROM tagxref AS v JOIN tag USING(tagid) JOIN event AS c ON c.objid=v.srcid
                     WHERE v.rid=event.objid AND v.tagtype=1 AND tagname='sym-'||?2 AND c.user=?1)
                   AND NOT EXISTS(SELECT 1 FROM tagxref AS b, own WHERE b.rid=event.objid AND b.tagid=8 AND b.tagtype>0
                     AND b.value GLOB 'agent/*' AND substr(b.value, -9)=substr(own.branch, -9))
                 ORDER BY event.mtime DESC, objid DESC"
            );
            db.prepare_cached(&sql)?
                .query_map([user.as_str(), own.as_str()], |row| hash(row, 0))?
                .collect()
        })
    }

    /// Sets the login's verdict. Returns the control artifact.
    ///
    /// # Errors
    /// [`Kind::Denied`] for a check-in of a run that the login took part in, [`Kind::Unchanged`] for the verdict that
    /// is set already, [`Kind::Refused`] for a private check-in, [`Kind::Invalid`] for a login whose name no tag can
    /// carry; [`Kind::NotFound`], [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn give(&self, check_in: &Hash, verdict: &Verdict, user: &User) -> Result<Hash> {
        self.check(check_in, verdict, user)?;
        let value = verdict.to_string();
        Tags::of(&self.repository).add_all(
            check_in,
            &[(&TagName::parse(AUDITED)?, &value), (&own_tag(user)?, &value)],
            user,
        )
    }

    /// Refuses a verdict that [`give`](Self::give) would refuse.
    ///
    /// # Errors
    /// Those of [`give`](Self::give).
    pub fn check(&self, check_in: &Hash, verdict: &Verdict, user: &User) -> Result<()> {
        let info = self.repository.store().check_in(check_in)?;
        if self.took_part(check_in, user)? {
            let whose = if self.is_own(check_in, user)? {
                "is your own".to_owned()
            } else {
                format!("is of a run that you took part in (`{}`)", info.branch)
            };
            return Err(Error::new(Kind::Denied, format!("check-in {} {whose}", check_in.short()))
                .with_hint("Leave the verdict to a login that had no part in it."));
        }
        if info.private {
            let what = format!("check-in {} is private, and so would the verdict be", check_in.short());
            return Err(Error::new(Kind::Refused, what).with_hint("Audit it when it is public."));
        }
        if self.verdict(check_in, user)?.is_some_and(|(standing, _)| standing == verdict.to_string()) {
            let what = format!("your verdict on check-in {} is `{verdict}` already", check_in.short());
            return Err(Error::new(Kind::Unchanged, what)
                .with_hint("There is nothing to do; go on with the next check-in."));
        }
        own_tag(user).map(drop)
    }

    fn is_own(&self, check_in: &Hash, user: &User) -> Result<bool> {
        self.repository.store().ask(|db| {
            let sql = format!(
                "SELECT 1 FROM event JOIN blob ON rid=objid WHERE uuid=?2 AND type='ci' AND {IS_OWN}"
            );
            db.prepare_cached(&sql)?.exists([user.as_str(), check_in.as_str()])
        })
    }
}

fn own_tag(user: &User) -> Result<TagName> {
    TagName::parse(&format!("{AUDITED}-{user}"))
}
