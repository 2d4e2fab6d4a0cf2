use std::fs;

use ocx::error::Kind;
use ocx::format::Markup;
use ocx::name::{Hash, PageName};
use ocx::record::{Wiki, WikiText};
use proptest::prelude::*;

use super::{lines, login};
use crate::support::{Fossil, Place, ann};

fn page(name: &str) -> PageName {
    PageName::parse(name).unwrap()
}

fn markdown(text: &str, previous: Option<Hash>) -> WikiText<'_> {
    WikiText { text, markup: Markup::Markdown, previous }
}

#[test]
fn plain_fossil_reads_what_was_written_and_deleted() {
    let place = Place::new();
    let wiki = Wiki::of(&place.repository);
    let (home, text) = (page("Home 😀"), "# Ünïcode 😀\r\nno line end");
    let first = wiki.write(&home, &markdown(text, None), &ann()).unwrap();
    assert!(!first.deleted && !first.pending && first.previous.is_none());
    for &fossil in Fossil::each() {
        assert_eq!(place.by(fossil, &["wiki", "export", "Home 😀"]), format!("{text}\n"));
        assert_eq!(place.by(fossil, &["wiki", "list"]), "Home 😀\n");
    }
    let second = wiki.write(&home, &markdown("# Two\n", Some(first.hash)), &ann()).unwrap();
    assert_eq!(second.previous, Some(first.hash));
    assert_eq!(place.fossil(&["wiki", "export", "Home 😀"]), "# Two\n");
    assert_eq!(wiki.read(&home, Some(&first.hash)).unwrap().text, text.as_bytes());
    let gone = wiki.delete(&home, &second.hash, &ann()).unwrap();
    assert!(gone.deleted);
    assert_eq!(place.fossil(&["wiki", "list"]), "");
    assert!(wiki.list().unwrap().is_empty());
    assert_eq!(wiki.read(&home, None).unwrap_err().kind(), Kind::NotFound);
    let back = wiki.write(&home, &markdown("back\n", None), &ann()).unwrap();
    assert_eq!(back.previous, Some(gone.hash));
    let history: Vec<_> = wiki.history(&home).unwrap().into_iter().map(|v| v.hash).collect();
    assert_eq!(history, [back.hash, gone.hash, second.hash, first.hash]);
    place.assert_whole();
}

#[test]
fn what_plain_fossil_wrote_is_read() {
    let place = Place::new();
    let wiki = Wiki::of(&place.repository);
    for (fossil, name) in [(Fossil::Reference, "By 2.21"), (Fossil::Own, "By 2.28")] {
        place.write("page", "some *text*\n");
        let file = place.path("page");
        place.by(fossil, &["wiki", "create", name, file.to_str().unwrap(), "--mimetype", "text/x-markdown"]);
        let read = wiki.read(&page(name), None).unwrap();
        assert_eq!(
            (read.text.as_slice(), read.mimetype.as_str()),
            (&b"some *text*\n"[..], "text/x-markdown")
        );
        place.write("page", "changed by ocx\n");
        wiki.write(&page(name), &markdown("changed by ocx\n", Some(read.version.hash)), &ann()).unwrap();
        place.write("page", "changed back\n");
        place.by(fossil, &["wiki", "commit", name, file.to_str().unwrap()]);
        let history = wiki.history(&page(name)).unwrap();
        assert_eq!(history.len(), 3);
        assert_eq!(wiki.read(&page(name), None).unwrap().text, b"changed back\n");
        fs::remove_file(file).unwrap();
    }
    let names: Vec<_> = wiki.list().unwrap().into_iter().map(|page| page.name).collect();
    assert_eq!(names, ["By 2.21", "By 2.28"]);
}

#[test]
fn a_write_is_refused_when_the_page_has_moved_on() {
    let place = Place::new();
    let wiki = Wiki::of(&place.repository);
    let home = page("Home");
    let first = wiki.write(&home, &markdown("one\n", None), &ann()).unwrap();
    let bob = login(&place, "bob", "jkf");
    wiki.write(&home, &markdown("two\n", Some(first.hash)), &bob).unwrap();
    let e = wiki.write(&home, &markdown("mine\n", Some(first.hash)), &ann()).unwrap_err();
    assert_eq!(e.kind(), Kind::Changed);
    assert!(e.to_string().contains("by bob"), "{e}");
    assert_eq!(wiki.delete(&home, &first.hash, &ann()).unwrap_err().kind(), Kind::Changed);
    assert_eq!(wiki.write(&home, &markdown("mine\n", None), &ann()).unwrap_err().kind(), Kind::Exists);
    assert_eq!(wiki.read(&home, None).unwrap().text, b"two\n");
}

#[test]
fn what_cannot_be_a_page_is_refused() {
    let place = Place::new();
    let wiki = Wiki::of(&place.repository);
    let home = page("Home");
    let other = Hash::of(b"other");
    let refused =
        |text: &str, previous| wiki.write(&home, &markdown(text, previous), &ann()).unwrap_err().kind();
    assert_eq!(refused(" \n\t", None), Kind::Invalid);
    assert_eq!(refused("a\0b", None), Kind::Invalid);
    assert_eq!(refused("text", Some(other)), Kind::NotFound);
    assert_eq!(wiki.read(&home, None).unwrap_err().kind(), Kind::NotFound);
    let made = wiki.write(&home, &markdown("text", None), &ann()).unwrap();
    assert_eq!(refused("text", Some(made.hash)), Kind::Unchanged);
    assert_eq!(wiki.read(&home, Some(&other)).unwrap_err().kind(), Kind::NotFound);
    let zed = ocx::name::User::parse("zed").unwrap();
    let e = wiki.write(&home, &markdown("new", Some(made.hash)), &zed).unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    assert_eq!(place.sql("SELECT count(*) FROM event WHERE type='w'"), 1);
}

#[test]
fn an_edit_right_after_another_counts_though_the_clock_stands_still() {
    let place = Place::new();
    let wiki = Wiki::of(&place.repository);
    let home = page("Home");
    let mut previous = None;
    for i in 0..20 {
        previous = Some(wiki.write(&home, &markdown(&format!("{i}\n"), previous), &ann()).unwrap().hash);
    }
    assert_eq!(place.fossil(&["wiki", "export", "Home"]), "19\n");
    assert_eq!(lines(&place, "SELECT DISTINCT mtime||'' FROM event WHERE type='w'").len(), 20);
}

#[test]
fn moderation_keeps_an_edit_aside() {
    let place = Place::new();
    let db = rusqlite::Connection::open(place.repository.path()).unwrap();
    db.execute("INSERT INTO config(name, value, mtime) VALUES('modreq-wiki', 1, 1)", []).unwrap();
    let wiki = Wiki::of(&place.repository);
    let home = page("Home");
    let first = wiki.write(&home, &markdown("approved\n".repeat(20).as_str(), None), &ann()).unwrap();
    assert!(!first.pending);
    let bob = login(&place, "bob", "jkf");
    let second = wiki.write(&home, &markdown("waiting\n", Some(first.hash)), &bob).unwrap();
    assert!(second.pending);
    assert_eq!(place.sql("SELECT count(*) FROM modreq JOIN private ON rid=objid"), 1);
    let unsent = format!("SELECT count(*) FROM unsent JOIN blob USING(rid) WHERE uuid='{}'", second.hash);
    assert_eq!(place.sql(&unsent), 0);
    // Nothing public may be a delta of what is not.
    assert_eq!(place.sql("SELECT count(*) FROM delta WHERE srcid IN private"), 0);
    place.assert_whole();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_text_comes_back_byte_for_byte(text in "[^\\x00]{0,9}([^\\x00]|\r\n|\n|\nZ 0|😀){1,40}x?") {
        let place = Place::new();
        let wiki = Wiki::of(&place.repository);
        let home = page("Home");
        prop_assume!(!text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}').is_empty());
        wiki.write(&home, &markdown(&text, None), &ann()).unwrap();
        prop_assert_eq!(&wiki.read(&home, None).unwrap().text, text.as_bytes());
        // Plain Fossil ends what it prints with one line end, whatever stands there.
        let space = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
        let shown = place.fossil(&["wiki", "export", "Home"]);
        prop_assert_eq!(shown.trim_end_matches(space), text.trim_end_matches(space));
    }
}
