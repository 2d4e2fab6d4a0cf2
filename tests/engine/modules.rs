//! The tables of SQLite's modules (FTS5 and others) in a repository: each keeps statements of its own on Fossil's
//! connection, which a session must leave to it when it ends.

use ocx::bundle::{Bundle, Import, Selection};
use ocx::checkout::Checkout;
use ocx::engine;
use ocx::error::{Error, Kind};
use ocx::format::Markup;
use ocx::name::{Hash, PageName, TagName};
use ocx::record::{Forum, Tags, Wiki, WikiText};
use ocx::repo::Repository;
use rusqlite::Connection;

use super::place::{Place, save};
use crate::support::clones::{artifact, count};
use crate::support::{alone, ann};

/// Fossil's own index, with each of its tokenizers.
const TOKENIZERS: [&str; 4] = ["off", "porter", "unicode61", "trigram"];

/// What a repository may hold besides. Fossil runs no triggers, so a module's table stands in for one that it writes.
const OTHERS: [(&str, &str); 8] = [
    (
        "the index of an older Fossil",
        "DROP TABLE ftsidx; CREATE VIRTUAL TABLE ftsidx USING fts4(content=\"ftscontent\", title, body);",
    ),
    (
        "the index of chat",
        "CREATE TABLE chat(msgid INTEGER PRIMARY KEY AUTOINCREMENT, mtime JULIANDAY, lmtime TEXT, xfrom TEXT,
           xmsg TEXT, fname TEXT, fmime TEXT, mdel INT, file BLOB);
         CREATE VIRTUAL TABLE chatfts1 USING fts5(xmsg, content=chat, content_rowid=msgid, tokenize=porter);",
    ),
    ("FTS3", "DROP TABLE unsent; CREATE VIRTUAL TABLE unsent USING fts3(rid);"),
    ("FTS4", "DROP TABLE unsent; CREATE VIRTUAL TABLE unsent USING fts4(rid, prefix=\"2,4\");"),
    ("FTS5", "DROP TABLE unsent; CREATE VIRTUAL TABLE unsent USING fts5(rid);"),
    (
        "R-tree",
        "DROP TABLE rcvfrom; CREATE VIRTUAL TABLE rcvfrom USING rtree(rcvid, uid, mtime, +nonce, +ipaddr);",
    ),
    (
        "JSON as a table",
        "DROP TABLE shun;
         CREATE VIEW shun AS SELECT value AS uuid, 0 AS mtime, '' AS scom FROM json_each('[0,1,2,3,4,5,6,7,8,9]');
         CREATE INDEX fx_uuid ON blob(json_quote(uuid));",
    ),
    ("statistics", "ANALYZE;"),
];

/// What counts the rows of a module's table.
const ROWS: [(&str, &str); 5] = [
    ("FTS3", "SELECT count(*) FROM unsent"),
    ("FTS4", "SELECT count(*) FROM unsent"),
    ("FTS5", "SELECT count(*) FROM unsent"),
    ("R-tree", "SELECT count(*) FROM rcvfrom"),
    ("JSON as a table", "SELECT count(*) FROM shun"),
];

/// A repository whose sessions work on tables of modules, and a bundle for it.
struct Indexed {
    place: Place,
    bundle: Bundle,
}

impl Indexed {
    fn new() -> Self {
        let place = Place::new();
        let other = place.dir.path().join("other.fossil");
        let other = Repository::clone_file(&place.path(), &other, &ann()).unwrap();
        let base = place.checkout.parent().unwrap();
        let checkout = Checkout::open(&other, &place.dir.path().join("other"), None, Some(&ann())).unwrap();
        save(&checkout, "elsewhere", Some("side")).unwrap();
        let file = place.dir.path().join("bundle");
        other.export_bundle(&file, &Selection::descendants(base)).unwrap();
        let bundle = Bundle::open(&file).unwrap();
        let indexed = Self { place, bundle };
        indexed.end();
        indexed
    }

    /// With Fossil's own index.
    fn by_fossil(tokenizer: &str) -> Self {
        let indexed = Self::new();
        indexed.place.fossil(&["fts-config", "index", "on"]).unwrap();
        indexed.place.fossil(&["fts-config", "tokenizer", tokenizer]).unwrap();
        indexed.place.fossil(&["fts-config", "enable", "cdtwe"]).unwrap();
        indexed
    }

    fn by_sql(sql: &str) -> Self {
        let indexed = if sql.contains("ftsidx") { Self::by_fossil("off") } else { Self::new() };
        Connection::open(indexed.place.path()).unwrap().execute_batch(sql).unwrap();
        indexed
    }

    fn end(&self) {
        engine::close(&self.place.path()).unwrap();
    }

    fn wiki_edit(&self, text: &str) {
        let (wiki, page) = (Wiki::of(&self.place.repository), PageName::parse("Plan").unwrap());
        let previous = wiki.history(&page).ok().and_then(|all| all.first().map(|last| last.hash));
        wiki.write(&page, &WikiText { text, markup: Markup::Markdown, previous }, &ann()).unwrap();
    }

    /// A transaction that is rolled back after Fossil's code has put a page into the index.
    fn roll_back(&self, text: &str) {
        let cards = format!("D 2026-11-30T10:00:00\nL Notes\nU ann\nW {}\n{text}\n", text.len());
        let page = artifact(&cards);
        let failed = engine::transaction(&self.place.path(), "ann", move |t| {
            t.put(&page, Hash::of(&page).as_str(), None)?;
            Err::<(), _>(Error::new(Kind::Invalid, "not wanted"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "not wanted");
    }

    /// Does what changes a repository, each under another name, and ends the session after each if it is `apart`.
    /// A rebuild by Fossil drops the tables beneath those of foreign modules, so it belongs to Fossil's indexes only.
    fn work(&self, round: &str, apart: bool, rebuild: bool) {
        type Step<'a> = (&'a str, &'a dyn Fn(&str));
        let repository = &self.place.repository;
        let (tags, forum) = (Tags::of(repository), Forum::of(repository));
        let steps: [Step<'_>; 9] = [
            ("check-in", &|text| drop(self.place.save(text).unwrap())),
            ("wiki edit", &|text| self.wiki_edit(text)),
            ("forum post", &|text| drop(forum.start(text, text, Markup::Markdown, &ann()).unwrap())),
            ("tag", &|text| {
                let (tip, name) =
                    (self.place.checkout.parent().unwrap(), TagName::parse(&text.replace(' ', "-")));
                tags.add(&tip, &name.unwrap(), None, false, &ann()).unwrap();
            }),
            ("bundle import", &|_| {
                drop(repository.import_bundle(&self.bundle, &Import::by(ann())).unwrap());
            }),
            ("roll back", &|text| self.roll_back(text)),
            ("search", &|text| drop(self.place.fossil(&["search", text]).unwrap())),
            ("rebuild", &|_| {
                if rebuild {
                    repository.rebuild().unwrap();
                }
            }),
            ("fts-config", &|_| drop(self.place.fossil(&["fts-config"]).unwrap())),
        ];
        for (name, step) in steps {
            for time in ["first", "second"] {
                step(&format!("{round} {name} {time}"));
                if apart {
                    self.end();
                }
            }
        }
        self.end();
    }
}

#[test]
fn v23_a_session_frees_no_statement_of_a_module_of_sqlite() {
    if !alone::is_alone("modules::v23_a_session_frees_no_statement_of_a_module_of_sqlite", |_| {}) {
        return;
    }
    let own = TOKENIZERS.map(|name| (name, Indexed::by_fossil(name)));
    let others = OTHERS.map(|(name, sql)| (name, Indexed::by_sql(sql)));
    for (name, indexed) in own.into_iter().chain(others) {
        println!("{name}");
        let rows = ROWS.iter().find(|(other, _)| *other == name).map(|(_, sql)| sql);
        indexed.work("apart", true, rows.is_none());
        indexed.work("together", false, rows.is_none());
        let wiki = Wiki::of(&indexed.place.repository).history(&PageName::parse("Plan").unwrap()).unwrap();
        assert_eq!(wiki.len(), 4, "{name}: every edit stands");
        indexed.place.is_well(name);
        indexed.end();
        if let Some(sql) = rows {
            let rows = count(&indexed.place.path(), sql);
            assert!(rows > 9, "{name}: the module had work: {rows}");
        }
    }
}
