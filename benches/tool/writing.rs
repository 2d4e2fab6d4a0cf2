//! `ocx_edit`, `ocx_save` and `ocx_sync`. When the last two answer, their work is durable. There is no server here: the
//! benchmark `sync` measures pushes.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ocx::bundle::Bundle;
use ocx::bundle::Selection;
use ocx::checkout::{CheckIn, Checkout};
use ocx::name::{Branch, Hash, User};
use ocx::repo::Repository;
use serde_json::{Value, json};

use super::Place;
use super::common::mcp::{Client, Listening};
use super::common::programs::USER;
use super::common::{Options, Result, Way, interleaved, table};

/// The file that is edited. The benchmark makes it first.
const FILE: &str = "ocx-bench.txt";

const BRANCH: &str = "agent/ann-00000001";

pub fn calls(place: &Place, options: &Options) -> Result<()> {
    let pipes = RefCell::new(Client::start(&place.tree, &place.home)?);
    let server = Listening::start(&place.tree, &place.home)?;
    let kept = RefCell::new(server.connect()?);
    let on_pipes = |tool: &str, input: &Value| pipes.borrow_mut().time(tool, input);
    let over_http = |tool: &str, input: &Value| kept.borrow_mut().time(tool, input);
    fs::write(place.tree.join(FILE), "line 0 of the bench\n")?;
    let clone = RefCell::new(Elsewhere::of(place)?);
    let last = RefCell::new(0);
    let edit = |call: &dyn Fn(&str, &Value) -> Result<Duration>| {
        let before = last.replace_with(|n| *n + 1);
        let (old, new) = (format!("line {before} of"), format!("line {} of", before + 1));
        call("ocx_edit", &json!({"path": FILE, "old": old, "new": new}))
    };
    let save = |call: &dyn Fn(&str, &Value) -> Result<Duration>| {
        edit(call)?;
        call("ocx_save", &json!({"title": "t", "intent": "i", "expression": "e", "demonstrates": "d"}))
    };
    let sync = |call: &dyn Fn(&str, &Value) -> Result<Duration>| {
        let bundle = clone.borrow_mut().next()?;
        call("ocx_sync", &json!({"branch": BRANCH, "bundle": bundle}))
    };
    let ways = vec![
        Way::new("ocx_edit on pipes", |_| edit(&on_pipes)),
        Way::new("ocx_edit over HTTP", |_| edit(&over_http)),
        Way::new("ocx_save on pipes", |_| save(&on_pipes)),
        Way::new("ocx_save over HTTP", |_| save(&over_http)),
        Way::new("ocx_sync of one check-in on pipes", |_| sync(&on_pipes)),
        Way::new("ocx_sync of one check-in over HTTP", |_| sync(&over_http)),
    ];
    table("Changes, taking turns", &interleaved(ways, options.rounds(40))?);
    Ok(())
}

/// Another clone. Check-ins are made and bundled there.
struct Elsewhere {
    repository: Repository,
    checkout: Checkout,
    tip: Hash,
    made: usize,
}

impl Elsewhere {
    fn of(place: &Place) -> Result<Self> {
        let file = place.home.join("elsewhere.fossil");
        let from = rusqlite::Connection::open(place.home.join("r.fossil"))?;
        from.execute("VACUUM INTO ?1", [file.to_string_lossy()])?;
        let repository = Repository::open(&file)?;
        let checkout =
            Checkout::open(&repository, &place.home.join("elsewhere"), None, Some(&User::parse(USER)?))?;
        let tip = checkout.parent()?;
        Ok(Self { repository, checkout, tip, made: 0 })
    }

    /// Makes one more check-in. Returns its bundle as base64.
    fn next(&mut self) -> Result<String> {
        self.made += 1;
        fs::write(self.checkout.root().join(FILE), format!("elsewhere {}\n", self.made))?;
        let comment = format!("t {}\nIntent: i\nExpression: e\nDemonstrates: d", self.made);
        let branch = Branch::parse(BRANCH)?;
        let check_in =
            CheckIn { comment, branch: Some(branch.clone()), user: User::parse(USER)?, time: None };
        let made = self.checkout.check_in(&check_in, &self.checkout.status()?)?;
        let file = self.repository_folder().join("news.bundle");
        self.repository.export_bundle(&file, &Selection::branch(branch).for_one_who_has(self.tip))?;
        self.tip = made.hash;
        let mut bytes = Vec::new();
        Bundle::open(&file)?.write_wire(&mut bytes)?;
        fs::remove_file(file)?;
        Ok(STANDARD.encode(bytes))
    }

    fn repository_folder(&self) -> &Path {
        self.checkout.root().parent().unwrap_or_else(|| self.checkout.root())
    }
}
