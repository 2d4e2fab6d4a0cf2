use ocx::error::Kind;
use ocx::format::Markup;
use ocx::name::{Hash, User};
use ocx::record::{Forum, Post};
use proptest::prelude::*;

use super::{lines, login};
use crate::support::{Fossil, Place, ann};

fn texts(posts: &[Post]) -> Vec<&str> {
    posts.iter().map(|post| post.text.as_str()).collect()
}

#[test]
fn a_thread_is_shown_with_replies_and_edits() {
    let place = Place::new();
    let forum = Forum::of(&place.repository);
    let bob = login(&place, "bob", "234");
    assert!(forum.threads().unwrap().is_empty());
    let first = forum.start("A plan", "Let us begin.", Markup::Markdown, &ann()).unwrap();
    let reply = forum.reply(&first.hash, "Yes.", Markup::Plain, &bob).unwrap();
    let edited = forum
        .edit(&first.hash, Some("A better plan"), "Let us begin again.", Markup::Markdown, &ann())
        .unwrap();
    let deep = forum.reply(&reply.hash, "And on.", Markup::Markdown, &ann()).unwrap();
    let answer = forum.reply(&edited.hash, "To the edit.", Markup::Markdown, &bob).unwrap();
    assert_eq!((edited.first, edited.title.as_deref()), (first.hash, Some("A better plan")));
    let posts = forum.thread(&reply.hash).unwrap();
    assert_eq!(texts(&posts), ["Let us begin again.", "Yes.", "And on.", "To the edit."]);
    let answered: Vec<_> = posts.iter().map(|post| post.reply_to).collect();
    assert_eq!(answered, [None, Some(first.hash), Some(reply.hash), Some(first.hash)]);
    assert_eq!(posts[0].editor.as_deref(), Some("ann"));
    assert_eq!((posts[1].author.as_str(), posts[1].mimetype.as_str()), ("bob", "text/plain"));
    assert!(posts.iter().all(|post| post.thread == first.hash && !post.pending && !post.closed));
    let threads = forum.threads().unwrap();
    assert_eq!((threads.len(), threads[0].title.as_str(), threads[0].posts), (1, "A better plan", 4));
    assert_eq!((threads[0].first, threads[0].author.as_str()), (first.hash, "ann"));
    for hash in [first.hash, reply.hash, edited.hash, deep.hash, answer.hash] {
        assert_eq!(
            place.sql(&format!("SELECT count(*) FROM forumpost JOIN blob ON rid=fpid WHERE uuid='{hash}'")),
            1
        );
    }
    let titles = lines(&place, "SELECT comment FROM event WHERE type='f' ORDER BY mtime");
    assert_eq!(
        titles,
        [
            "Post: A better plan",
            "Reply: A better plan",
            "Edit: A better plan",
            "Reply: A better plan",
            "Reply: A better plan"
        ]
    );
    place.assert_whole();
}

#[test]
fn plain_fossil_shows_the_thread() {
    let place = Place::new();
    let forum = Forum::of(&place.repository);
    let first = forum.start("Plain & simple", "the first text", Markup::Markdown, &ann()).unwrap();
    forum.reply(&first.hash, "the second text", Markup::Markdown, &ann()).unwrap();
    for &fossil in Fossil::each() {
        let page = place.dir.path().join("page");
        let request = format!("GET /forumpost/{} HTTP/1.0\r\n\r\n", first.hash);
        std::fs::write(&page, request).unwrap();
        let mut command = fossil.command(place.dir.path(), place.dir.path(), &["test-http", "r.fossil"]);
        let out = command.stdin(std::fs::File::open(&page).unwrap()).output().unwrap();
        let shown = String::from_utf8_lossy(&out.stdout);
        for part in ["Plain &amp; simple", "the first text", "the second text"] {
            assert!(shown.contains(part), "{fossil:?}: {shown}");
        }
    }
}

#[test]
fn only_its_author_and_an_administrator_edit_a_post() {
    let place = Place::new();
    let forum = Forum::of(&place.repository);
    let (bob, eve) = (login(&place, "bob", "234"), login(&place, "eve", "2345"));
    let first = forum.start("Title", "by bob", Markup::Markdown, &bob).unwrap();
    let e = forum.edit(&first.hash, None, "by eve", Markup::Markdown, &eve).unwrap_err();
    assert_eq!(e.kind(), Kind::Denied);
    assert_eq!(forum.delete(&first.hash, &eve).unwrap_err().kind(), Kind::Denied);
    let second = forum.edit(&first.hash, None, "by the administrator", Markup::Markdown, &ann()).unwrap();
    assert_eq!((second.title.as_deref(), second.author.as_str()), (Some("Title"), "bob"));
    assert_eq!(second.editor.as_deref(), Some("ann"));
    let e = forum.edit(&first.hash, None, "late", Markup::Markdown, &bob).unwrap_err();
    assert_eq!(e.kind(), Kind::Changed);
    let reply = forum.reply(&second.hash, "a reply", Markup::Markdown, &bob).unwrap();
    let e = forum.edit(&reply.hash, Some("a title"), "x", Markup::Markdown, &bob).unwrap_err();
    assert_eq!(e.kind(), Kind::Invalid);
    let gone = forum.delete(&reply.hash, &bob).unwrap();
    assert!(gone.deleted && gone.text.is_empty());
    let gone = forum.delete(&second.hash, &bob).unwrap();
    assert!(gone.deleted);
    assert_eq!(forum.threads().unwrap()[0].title, "(Deleted)");
    place.assert_whole();
}

#[test]
fn what_cannot_be_posted_is_refused() {
    let place = Place::new();
    let forum = Forum::of(&place.repository);
    let start =
        |title: &str, text: &str| forum.start(title, text, Markup::Markdown, &ann()).unwrap_err().kind();
    assert_eq!(start("", "text"), Kind::Invalid);
    assert_eq!(start("Title", " \n"), Kind::Invalid);
    assert_eq!(start("Title", "a\0b"), Kind::Invalid);
    assert_eq!(start("Ti\0tle", "text"), Kind::Invalid);
    assert_eq!(start("A title\nA forged one", "text"), Kind::Invalid);
    let none = Hash::of(b"none");
    assert_eq!(forum.reply(&none, "x", Markup::Markdown, &ann()).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(forum.thread(&none).unwrap_err().kind(), Kind::NotFound);
    let zed = User::parse("zed").unwrap();
    assert_eq!(forum.start("Title", "x", Markup::Markdown, &zed).unwrap_err().kind(), Kind::NotFound);
    let check_in = place.checkout.parent().unwrap();
    assert_eq!(forum.post(&check_in).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(place.sql("SELECT count(*) FROM event WHERE type='f'"), 0);
}

#[test]
fn a_post_by_a_user_who_is_not_trusted_waits_for_a_moderator() {
    let place = Place::new();
    let forum = Forum::of(&place.repository);
    let new = login(&place, "new", "23");
    let first = forum.start("Title", &"public\n".repeat(20), Markup::Markdown, &ann()).unwrap();
    let reply = forum.reply(&first.hash, "waiting", Markup::Markdown, &new).unwrap();
    assert!(reply.pending && !first.pending);
    assert_eq!(
        place.sql("SELECT count(*) FROM modreq JOIN private ON rid=objid JOIN forumpost ON fpid=rid"),
        1
    );
    assert_eq!(place.sql("SELECT count(*) FROM delta WHERE srcid IN private"), 0);
    let edited = forum.edit(&reply.hash, None, "still waiting", Markup::Markdown, &new).unwrap();
    assert!(edited.pending);
    assert!(
        !forum.reply(&first.hash, "trusted", Markup::Markdown, &login(&place, "old", "234")).unwrap().pending
    );
    // A clone gets only what is public. Plain Fossil copies the file alone, without what still stands in its WAL.
    place.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    place.fossil(&["clone", place.repository.path().to_str().unwrap(), "../clone.fossil"]);
    let clone = rusqlite::Connection::open(place.dir.path().join("clone.fossil")).unwrap();
    let posts: i64 = clone.query_row("SELECT count(*) FROM forumpost", [], |row| row.get(0)).unwrap();
    assert_eq!(posts, 2);
    place.assert_whole();
}

#[test]
fn a_closed_thread_takes_no_more_posts() {
    let place = Place::new();
    let forum = Forum::of(&place.repository);
    let bob = login(&place, "bob", "234");
    let first = forum.start("Title", "text", Markup::Markdown, &bob).unwrap();
    let reply = forum.reply(&first.hash, "reply", Markup::Markdown, &bob).unwrap();
    place.by(Fossil::Own, &["tag", "add", "--raw", "--propagate", "closed", first.hash.as_str()]);
    assert!(forum.thread(&first.hash).unwrap().iter().all(|post| post.closed));
    assert_eq!(forum.reply(&reply.hash, "x", Markup::Markdown, &bob).unwrap_err().kind(), Kind::Closed);
    assert_eq!(forum.edit(&first.hash, None, "x", Markup::Markdown, &bob).unwrap_err().kind(), Kind::Closed);
    forum.reply(&reply.hash, "by an administrator", Markup::Markdown, &ann()).unwrap();
}

#[test]
fn what_is_new_in_ones_threads_is_found() {
    let place = Place::new();
    let forum = Forum::of(&place.repository);
    let bob = login(&place, "bob", "234");
    let first = forum.start("Ours", "one", Markup::Markdown, &ann()).unwrap();
    forum.start("Theirs", "not mine", Markup::Markdown, &bob).unwrap();
    assert!(forum.since_own(&ann()).unwrap().is_empty());
    let two = forum.reply(&first.hash, "two", Markup::Markdown, &bob).unwrap();
    let three = forum.reply(&two.hash, "three", Markup::Markdown, &bob).unwrap();
    assert_eq!(texts(&forum.since_own(&ann()).unwrap()), ["two", "three"]);
    forum.reply(&three.hash, "four", Markup::Markdown, &ann()).unwrap();
    assert!(forum.since_own(&ann()).unwrap().is_empty());
    forum.edit(&two.hash, None, "two, edited", Markup::Markdown, &bob).unwrap();
    assert_eq!(texts(&forum.since_own(&ann()).unwrap()), ["two, edited"]);
    assert!(forum.since_own(&bob).unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_text_comes_back_byte_for_byte(text in "x?([^\\x00]|\r\n|\n|\nZ 0|😀){0,40}", title in "t\\PC{0,20}t") {
        prop_assume!(!text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}').is_empty());
        let place = Place::new();
        let forum = Forum::of(&place.repository);
        let post = forum.start(&title, &text, Markup::Plain, &ann()).unwrap();
        prop_assert_eq!(&forum.post(&post.hash).unwrap().text, &text);
        prop_assert_eq!(post.title.as_deref(), Some(title.as_str()));
        prop_assert_eq!(&forum.threads().unwrap()[0].title, &title);
    }
}
