//! What Fossil derives from artifacts is the same whether it was linked in as they came or derived anew.

use std::collections::BTreeMap;

use ocx::format::Markup;
use ocx::name::{Branch, PageName, TagName, UnversionedName};
use ocx::record::{Forum, Tags, Unversioned, Wiki, WikiText};

use super::login;
use crate::support::{Place, ann};

/// The tables that follow from artifacts; what may differ without meaning is left out.
const DERIVED: [&str; 9] = [
    "SELECT type, mtime, objid, tagid, bgcolor, euser, user, ecomment, comment, omtime FROM event ORDER BY objid",
    "SELECT tagname, tagtype, srcid, origid, value, mtime, rid FROM tagxref JOIN tag USING(tagid) ORDER BY rid, tagname",
    "SELECT * FROM plink ORDER BY cid, pid",
    "SELECT mid, fid, pmid, pid, fnid, pfnid, mperm, isaux FROM mlink ORDER BY mid, fnid, pmid",
    "SELECT * FROM leaf ORDER BY rid",
    "SELECT target, srctype, srcid, mtime FROM backlink ORDER BY target, srctype, srcid",
    "SELECT mtime, src, target, filename, isLatest FROM attachment ORDER BY attachid",
    "SELECT * FROM forumpost ORDER BY fpid",
    "SELECT * FROM private ORDER BY rid",
];

fn derived(place: &Place) -> BTreeMap<&'static str, Vec<String>> {
    let db = rusqlite::Connection::open(place.repository.path()).unwrap();
    let rows = |sql: &str| -> Vec<String> {
        let mut query = db.prepare(sql).unwrap();
        let columns = query.column_count();
        let line = |row: &rusqlite::Row<'_>| {
            Ok((0..columns).map(|i| format!("{:?}", row.get_ref(i).unwrap())).collect::<Vec<_>>().join("|"))
        };
        query.query_map([], line).unwrap().collect::<Result<_, _>>().unwrap()
    };
    DERIVED.iter().map(|sql| (*sql, rows(sql))).collect()
}

/// A repository with some of each kind of record.
fn full() -> Place {
    let place = Place::new();
    let bob = login(&place, "bob", "23io");
    place.write("a.txt", "one\n");
    let one = place.check_in("one", None).unwrap().hash;
    place.write("a.txt", "side\n");
    place.check_in("two", Some("side")).unwrap();
    let tags = Tags::of(&place.repository);
    let tag = |text: &str| TagName::parse(text).unwrap();
    tags.add(&one, &tag("v1"), Some("a value"), false, &ann()).unwrap();
    tags.add(&one, &tag("line"), None, true, &ann()).unwrap();
    tags.cancel(&one, &tag("v1"), &ann()).unwrap();
    tags.close(&Branch::parse("side").unwrap(), &ann()).unwrap();
    let wiki = Wiki::of(&place.repository);
    let page = |name: &str| PageName::parse(name).unwrap();
    let mut previous = None;
    let link = format!("see [{}] and [Other]\n", &one.as_str()[..12]);
    for text in ["first text of some length\n".repeat(9), "second\n".to_owned(), link] {
        let new = WikiText { text: &text, markup: Markup::FossilWiki, previous };
        previous = Some(wiki.write(&page("Home"), &new, &ann()).unwrap().hash);
    }
    let new = WikiText { text: "other", markup: Markup::Markdown, previous: None };
    let other = wiki.write(&page("Other"), &new, &bob).unwrap();
    wiki.delete(&page("Other"), &other.hash, &ann()).unwrap();
    let forum = Forum::of(&place.repository);
    let first = forum
        .start("A thread", &format!("about [{}]", &one.as_str()[..12]), Markup::FossilWiki, &ann())
        .unwrap();
    let reply = forum.reply(&first.hash, "a reply", Markup::Markdown, &ann()).unwrap();
    forum.edit(&first.hash, Some("A better title"), "edited", Markup::Markdown, &ann()).unwrap();
    forum.edit(&reply.hash, None, "a reply, edited", Markup::Markdown, &ann()).unwrap();
    forum.reply(&reply.hash, "waiting for a moderator", Markup::Markdown, &bob).unwrap();
    place
}

#[test]
fn a_rebuild_changes_no_derived_table() {
    let place = full();
    let before = derived(&place);
    assert!(before.iter().all(|(sql, rows)| !rows.is_empty() || sql.contains("attachment")), "{before:#?}");
    place.repository.rebuild().unwrap();
    for (sql, rows) in derived(&place) {
        assert_eq!(before[sql], rows, "{sql}");
    }
    place.assert_whole();
}

#[test]
fn a_rebuild_by_2_21_keeps_every_record() {
    let place = full();
    let counted = |place: &Place| {
        [
            "SELECT count(*) FROM event",
            "SELECT count(*) FROM forumpost",
            "SELECT count(*) FROM leaf",
            "SELECT count(*) FROM tagxref",
        ]
        .map(|sql| place.sql(sql))
    };
    let before = counted(&place);
    place.fossil(&["rebuild", place.repository.path().to_str().unwrap()]);
    assert_eq!(counted(&place), before);
    place.assert_whole();
}

#[test]
fn in_a_repository_of_sha1_names_records_have_them_too() {
    let place = Place::by_plain_fossil(&["--sha1"]);
    let wiki = Wiki::of(&place.repository);
    let new = WikiText { text: "text\n", markup: Markup::Markdown, previous: None };
    let page = PageName::parse("Home").unwrap();
    assert!(!wiki.write(&page, &new, &ann()).unwrap().hash.is_sha3());
    let files = Unversioned::of(&place.repository);
    assert!(!files.put(&UnversionedName::parse("x").unwrap(), b"bytes", &ann()).unwrap().hash.is_sha3());
    assert_eq!(files.get(&UnversionedName::parse("x").unwrap()).unwrap(), b"bytes");
    assert_eq!(place.fossil(&["wiki", "export", "Home"]), "text\n");
    assert_eq!(place.sql("SELECT count(*) FROM blob WHERE length(uuid)>40"), 0);
    place.assert_whole();
}
