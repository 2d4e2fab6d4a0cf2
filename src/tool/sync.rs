//! `ocx_sync`: check-ins that were made in another clone, from a bundle into this repository and on to the server; and
//! back, the check-ins after one that the caller holds. The checkout's files are not touched.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::answer::{Operation, Stop};
use super::catalogue::Tool;
use super::declare::{Capability, Declaration, Field, FieldKind, Hints};
use super::deliver::{AGAIN_BYTES_MAX, Written, deliver, link};
use super::encoded::decoded;
use super::input::Input;
use super::page::counted;
use super::parcel::{Form, GIVEN_TEXT_MAX, Parcel};
use super::plan::{Permit, Plan};
use super::session::Call;
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash};
use crate::repo::bundle::{BundledCheckIn, Contents, Import, Imported, Selection};
use crate::repo::store::CheckInInfo;
use crate::repo::{Bundle, Outcome, Store, SyncOptions};
use crate::run::Comment;

/// How many landed check-ins are listed.
const LANDED_MAX: usize = 50;

/// The tool.
pub struct Sync;

static DECLARATION: Declaration = Declaration {
    name: "ocx_sync",
    title: "Publish a bundle",
    summary: "Publish check-ins made in another clone: import a bundle of your branch here, all of it or nothing, and \
              push. With `have`, also get a bundle of the check-ins after it. Files are not touched.",
    needs: Capability::CheckIn,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    fields: &[
        Field {
            name: "branch",
            kind: FieldKind::Text { bytes_max: 120, empty: false },
            required: true,
            positional: true,
            doc: "the branch of the bundled check-ins, never trunk",
        },
        Field {
            name: "bundle",
            kind: FieldKind::Text { bytes_max: GIVEN_TEXT_MAX, empty: false },
            required: false,
            positional: false,
            doc: "the bundle of at most 9437184 bytes as standard base64 with padding and no line breaks; leave out only \
                  where `have` is given",
        },
        Field {
            name: "have",
            kind: FieldKind::Text { bytes_max: 64, empty: false },
            required: false,
            positional: false,
            doc: "the full hash of a check-in that you hold: its descendants come back as a bundle",
        },
        Field {
            name: "form",
            kind: FieldKind::Word(Form::WORDS),
            required: false,
            positional: false,
            doc: "how that bundle is written: `fossil` for plain Fossil, `wire` is smaller and only OCX reads it; by \
                  default as the bundle that you give, or else `wire`",
        },
    ],
};

impl Tool for Sync {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn writes(&self) -> bool {
        true
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Stop> {
        let branch = working(input.required("branch")?)?;
        let have = input.text("have").map(|text| full(call, input, text)).transpose()?;
        let Some(text) = input.text("bundle") else {
            let have = have.ok_or_else(nothing_asked)?;
            is_here(call, have)?;
            let after = after(call, have, form(input, None))?;
            return Ok(Plan::looked(vec![Operation::reads("export_bundle")], json!({"descendants": after})));
        };
        let bytes = decoded("bundle", text)?;
        let back = have.map(|have| (have, form(input, Some(&bytes))));
        let bundle = Bundle::from_bytes(&bytes)?;
        let remote = call.run().checkout().repository().remote()?.is_some();
        let first = Given::of(call, &bundle, &branch, have);
        let pulls = remote && first.as_ref().map_or_else(may_be_news, |given| given.continues);
        let (known, imports) = match &first {
            Ok(given) => (given.told(None), given.new() > 0),
            Err(e) if pulls => (json!({"branch": branch.as_str(), "before_the_pull": e.to_string()}), true),
            Err(_) => (Value::Null, false),
        };
        let given = match first {
            Err(e) if !pulls => return Err(e.into()),
            given => given,
        };
        let mut log = vec![Operation::reads("read_bundle")];
        log.extend(pulls.then(|| Operation::changes("pull")));
        log.extend(imports.then(|| Operation::changes("import_bundle")));
        log.extend(remote.then(|| Operation::changes("push")));
        Ok(Plan::change(log, known, move |permit| {
            let given = if pulls { caught_up(call, permit, given, &bundle, &branch, have)? } else { given? };
            perform(call, permit, &given, back, &input.again())
        }))
    }
}

/// How the descendants are written.
fn form(input: &Input, given: Option<&[u8]>) -> Form {
    input.text("form").map_or_else(|| given.map_or(Form::Wire, Form::of), Form::named)
}

fn nothing_asked() -> Error {
    Error::new(Kind::Invalid, "neither `bundle` nor `have` is given")
        .hint("Give the bundle of your branch in `bundle`, or in `have` a check-in that you hold.")
}

/// Whether the server may know what makes this refusal none.
fn may_be_news(refusal: &Error) -> bool {
    matches!(refusal.kind(), Kind::NotFound | Kind::Denied)
}

/// Judges the bundle by what the server has now. One that cannot be asked is no reason to refuse.
fn caught_up(
    call: &Call<'_>,
    permit: &Permit<'_>,
    first: Result<Given>,
    bundle: &Bundle,
    branch: &Branch,
    have: Option<Hash>,
) -> Result<Given> {
    call.watch().progress("fetching from the server");
    let Some(remote) = call.run().remote()? else { return first };
    match call.run().checkout().repository().pull(&remote) {
        Ok(Outcome::Received { .. }) => {
            permit.did("pull");
            Given::of(call, bundle, branch, have)
        }
        _ => first,
    }
}

fn perform(
    call: &Call<'_>,
    permit: &Permit<'_>,
    given: &Given,
    back: Option<(Hash, Form)>,
    again: &Value,
) -> Result<Value, Stop> {
    call.watch().progress("importing the bundle");
    let imported = call.run().checkout().repository().import_bundle(&given.bundle, &given.import)?;
    if imported.artifacts > 0 {
        permit.did("import_bundle");
    }
    permit.end_turn();
    let mut result = given.told(Some(&imported));
    let tip = given.landed.last().map(|(check_in, _)| check_in.hash.short().to_owned()).unwrap_or_default();
    let written = Written {
        noun: "bundle",
        done: "imported",
        name: format!("of {} up to {tip}", counted(given.landed.len(), "check-in")),
        artifact: None,
        tool: DECLARATION.name,
        again,
    };
    deliver(call, permit, &mut result, &written, &SyncOptions::push())?;
    acknowledge(call, &mut result)?;
    if let Some((have, form)) = back {
        permit.looked("export_bundle");
        match after(call, have, form) {
            Ok(after) => result["descendants"] = after,
            Err(stop) => return Err(stop.reached(result)),
        }
    }
    Ok(result)
}

/// A bundle that this caller may publish.
struct Given {
    bundle: Bundle,
    import: Import,
    branch: Branch,
    /// Its check-ins on the branch, the oldest first, and whether each is new here.
    landed: Vec<(BundledCheckIn, bool)>,
    /// Whether a new one goes on on the branch as it is here.
    continues: bool,
}

impl Given {
    fn of(call: &Call<'_>, bundle: &Bundle, branch: &Branch, have: Option<Hash>) -> Result<Self> {
        let user = call.user().clone();
        let import = Import { only: Some((user.clone(), branch.clone())), ..Import::by(user) };
        let contents = call.run().checkout().repository().check_bundle(bundle, &import)?;
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
        Ok(Self { bundle: bundle.clone(), import, branch: branch.clone(), landed, continues })
    }

    fn new(&self) -> usize {
        self.landed.iter().filter(|(_, is_new)| *is_new).count()
    }

    /// What lands, before or after it has.
    fn told(&self, imported: Option<&Imported>) -> Value {
        let listed = self.landed.iter().rev().take(LANDED_MAX).map(|(check_in, is_new)| {
            let title = check_in.comment.lines().next().unwrap_or_default();
            json!({"checkin": check_in.hash, "title": title, "new": is_new})
        });
        let listed: Vec<Value> = listed.collect();
        let mut told = json!({
            "branch": self.branch.as_str(), "new": self.new(), "shown": listed.len(), "of": self.landed.len(),
        });
        told["landed"] = listed.into();
        if let Some(imported) = imported {
            told["artifacts"] = json!({"new": imported.artifacts, "present": imported.present});
        }
        told
    }
}

/// A branch that may be published in this way.
fn working(text: &str) -> Result<Branch> {
    let branch = Branch::parse(text)?;
    if branch.is_trunk() {
        return Err(Error::new(Kind::Denied, "nothing is published on `trunk` in this way")
            .hint("Commit on a working branch (`fossil commit --branch NAME`), and bundle that."));
    }
    Ok(branch)
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
            .hint("Name in `branch` the branch that you bundled."));
    }
    Ok(landed)
}

/// Judges a new check-in; gives its branch.
fn fit(
    store: &Store,
    check_in: &BundledCheckIn,
    branch: &Branch,
    before: &HashMap<Hash, String>,
) -> Result<String> {
    let short = check_in.hash.short();
    Comment::parse(&check_in.comment).map_err(|e| {
        let hint = e.next_step().unwrap_or_default().to_owned();
        Error::new(e.kind(), format!("check-in {short}: {e}"))
            .hint(format!("{hint} Commit again in your clone with such a comment, and bundle that."))
    })?;
    let mut parents = check_in.parents.iter();
    let first = parents.next().map(|parent| beneath(store, check_in, parent, before)).transpose()?.flatten();
    for parent in parents {
        beneath(store, check_in, parent, before)?;
    }
    let inherited = || check_in.parents.first().and_then(|parent| before.get(parent)).cloned();
    let on = check_in.branch.clone().or_else(inherited).or_else(|| first.as_ref().map(|p| p.branch.clone()));
    let on = on.unwrap_or_else(|| "trunk".to_owned());
    if on != branch.as_str() {
        return Err(Error::new(
            Kind::Denied,
            format!("check-in {short} is on branch `{on}` and not on `{branch}`"),
        )
        .hint("Bundle only check-ins of your own on one branch of your own, and name it in `branch`."));
    }
    if let Some(parent) = first {
        later(check_in, &parent)?;
        if parent.branch == on {
            open(&parent, branch)?;
        }
    }
    Ok(on)
}

/// A parent that is here; nothing for one that comes in the bundle.
fn beneath(
    store: &Store,
    check_in: &BundledCheckIn,
    parent: &Hash,
    before: &HashMap<Hash, String>,
) -> Result<Option<CheckInInfo>> {
    let here = known(store, parent)?;
    if here.is_none() && !before.contains_key(parent) {
        let what = format!(
            "the parent `{parent}` of check-in {} is neither here nor in the bundle",
            check_in.hash.short()
        );
        return Err(Error::new(Kind::NotFound, what)
            .hint("Bundle the whole branch (`fossil bundle export FILE --branch NAME --standalone`)."));
    }
    Ok(here)
}

/// Refuses a check-in that is older than its parent.
fn later(check_in: &BundledCheckIn, parent: &CheckInInfo) -> Result<()> {
    // Both are in UTC and begin alike, up to the seconds.
    if check_in.date.get(..19) >= parent.time.get(..19) {
        return Ok(());
    }
    let (short, date) = (check_in.hash.short(), &check_in.date);
    let what = format!("check-in {short} is dated {date}, before its parent {}", parent.time);
    Err(Error::new(Kind::Refused, what).hint("Commit again in your clone when its clock is right."))
}

/// Refuses what would go on where the branch does not.
fn open(parent: &CheckInInfo, branch: &Branch) -> Result<()> {
    if parent.closed {
        return Err(Error::new(Kind::Closed, format!("the branch `{branch}` is closed"))
            .hint("Commit on another branch, or have this one reopened."));
    }
    if !parent.leaf {
        let what = format!(
            "`{branch}` has a newer check-in than {}, so this one would fork it",
            parent.hash.short()
        );
        return Err(Error::new(Kind::WouldFork, what).hint(
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

const HAVE: &str =
    "Give in `have` the full hash of a check-in that you hold and the server has, all 40 or 64 hex digits.";

/// The hash in `have`. Of a short one, the same call with the full one is the next.
fn full(call: &Call<'_>, input: &Input, text: &str) -> Result<Hash, Stop> {
    Hash::parse(text).map_err(|e| {
        let stop = Stop::from(Error::new(Kind::Invalid, format!("field `have`: {e}")).hint(HAVE));
        let mut again = input.again();
        match call.store().resolve(text) {
            Ok(meant) if meant.as_str().starts_with(&text.to_ascii_lowercase()) => {
                again["have"] = meant.as_str().into();
                if again.to_string().len() > AGAIN_BYTES_MAX {
                    stop
                } else {
                    stop.next(DECLARATION.name, again)
                }
            }
            _ => stop,
        }
    })
}

fn is_here(call: &Call<'_>, have: Hash) -> Result<()> {
    match known(call.store(), &have)? {
        Some(info) if !info.private => Ok(()),
        _ => {
            Err(Error::new(Kind::NotFound, format!("field `have`: no check-in `{have}` is here")).hint(HAVE))
        }
    }
}

/// The descendants of a check-in, as a bundle for one who holds it.
fn after(call: &Call<'_>, have: Hash, form: Form) -> Result<Value, Stop> {
    let selection = Selection::descendants(have).for_one_who_has(have);
    let mut told = json!({"have": have});
    let Some(parcel) = Parcel::of(call.run().checkout().repository(), &selection, form)? else {
        told["check_ins"] = json!([]);
        told["of"] = 0.into();
        told["bundle"] = Value::Null;
        return Ok(told);
    };
    let parcel = parcel.fitting(
        "Give as `have` a newer check-in that you hold, or fetch by command in your clone: `fossil pull URL`.",
    )?;
    if let (Value::Object(told), Value::Object(described)) = (&mut told, parcel.described()) {
        told.extend(described);
    }
    told["bundle"] = parcel.text().into();
    Ok(told)
}

/// Says of each check-in where it is to be seen, and who the last repository says it came from.
fn acknowledge(call: &Call<'_>, result: &mut Value) -> Result<()> {
    let pushed = result["pushed"] == true;
    let Some(landed) = result["landed"].as_array_mut() else { return Ok(()) };
    for entry in landed {
        let Some(hash) = entry["checkin"].as_str().map(Hash::parse).transpose()? else { continue };
        if pushed {
            entry["link"] = link(call, &hash)?.into();
            entry["receipt"] = Value::Null;
        } else {
            let receipt = call.store().receipt(&hash)?;
            entry["receipt"] = receipt.map_or(Value::Null, |r| json!({"user": r.user, "time": r.time}));
        }
    }
    Ok(())
}
