use ocx::checkout::Checkout;
use ocx::error::Kind;
use ocx::name::{Branch, Hash, TagName};
use ocx::record::Tags;

use super::login;
use crate::support::{Fossil, Place, ann, check_in};

fn name(text: &str) -> TagName {
    TagName::parse(text).unwrap()
}

fn branch(text: &str) -> Branch {
    Branch::parse(text).unwrap()
}

/// Three check-ins on trunk.
fn line(place: &Place) -> [Hash; 3] {
    [1, 2, 3].map(|i| {
        place.write("a.txt", format!("{i}\n"));
        place.check_in(&format!("number {i}"), None).unwrap().hash
    })
}

#[test]
fn plain_fossil_lists_tags_that_were_set_and_cancelled() {
    let place = Place::new();
    let [one, two, three] = line(&place);
    let tags = Tags::of(&place.repository);
    let bob = login(&place, "bob", "io");
    tags.add(&two, &name("v1.0"), Some("with \\ a value\nof lines 😀"), false, &bob).unwrap();
    let source = tags.add(&one, &name("good"), None, true, &ann()).unwrap();
    for &fossil in Fossil::each() {
        assert_eq!(place.by(fossil, &["tag", "ls"]), "good\ntrunk\nv1.0\n");
        assert!(place.by(fossil, &["tag", "ls", three.as_str()]).contains("good"));
        let found = place.by(fossil, &["tag", "find", "--raw", "sym-v1.0"]);
        assert_eq!(found.trim(), two.as_str());
    }
    assert_eq!(tags.names().unwrap(), ["good", "v1.0"]);
    assert_eq!(tags.find(&name("good")).unwrap(), [three, two, one]);
    let of_two = tags.list(&two).unwrap();
    let tag = of_two.iter().find(|tag| tag.name == "v1.0").unwrap();
    assert_eq!(tag.value.as_deref(), Some("with \\ a value\nof lines 😀"));
    assert_eq!((tag.user.as_deref(), tag.symbolic, tag.propagates), (Some("bob"), true, false));
    let tag = of_two.iter().find(|tag| tag.name == "good").unwrap();
    assert_eq!((tag.inherited_from, tag.source, tag.user.as_deref()), (Some(one), Some(source), Some("ann")));
    let property = of_two.iter().find(|tag| tag.name == "branch").unwrap();
    assert_eq!((property.symbolic, property.value.as_deref()), (false, Some("trunk")));
    tags.cancel(&three, &name("good"), &ann()).unwrap();
    tags.cancel(&two, &name("v1.0"), &ann()).unwrap();
    assert_eq!(tags.find(&name("good")).unwrap(), [two, one]);
    assert_eq!(place.fossil(&["tag", "ls"]), "good\ntrunk\n");
    tags.add(&two, &name("v1.0"), Some("again"), false, &ann()).unwrap();
    assert_eq!(place.repository.store().resolve("v1.0").unwrap(), two);
    place.assert_whole();
}

#[test]
fn tags_that_plain_fossil_set_are_listed() {
    let place = Place::new();
    let [one, two, _] = line(&place);
    let tags = Tags::of(&place.repository);
    for (fossil, tag) in [(Fossil::Reference, "by-2.21"), (Fossil::Own, "by-2.28")] {
        place.by(fossil, &["tag", "add", "--propagate", tag, one.as_str(), "some value"]);
        let found = tags.list(&two).unwrap().into_iter().find(|t| t.name == tag).unwrap();
        assert_eq!((found.value.as_deref(), found.inherited_from), (Some("some value"), Some(one)));
        tags.cancel(&one, &name(tag), &ann()).unwrap();
        assert!(!place.by(fossil, &["tag", "ls"]).contains(tag));
    }
}

#[test]
fn tags_that_make_no_sense_are_refused() {
    let place = Place::new();
    let [one, _, three] = line(&place);
    let tags = Tags::of(&place.repository);
    for bad in ["beef", "2026-11-30", "tip", "a b"] {
        assert_eq!(TagName::parse(bad).unwrap_err().kind(), Kind::Invalid);
    }
    let add =
        |hash: &Hash, tag: &str, value| tags.add(hash, &name(tag), value, false, &ann()).unwrap_err().kind();
    assert_eq!(add(&one, "trunk", None), Kind::Exists);
    assert_eq!(tags.cancel(&one, &name("trunk"), &ann()).unwrap_err().kind(), Kind::Exists);
    assert_eq!(add(&Hash::of(b"none"), "v1", None), Kind::NotFound);
    assert_eq!(tags.cancel(&one, &name("v1"), &ann()).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(add(&one, "v1", Some("a\0b")), Kind::Invalid);
    tags.add(&one, &name("v1"), Some("x"), false, &ann()).unwrap();
    assert_eq!(add(&one, "v1", Some("x")), Kind::Unchanged);
    let zed = ocx::name::User::parse("zed").unwrap();
    assert_eq!(tags.add(&three, &name("v2"), None, false, &zed).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(place.sql("SELECT count(*) FROM event WHERE type='g'"), 1);
}

#[test]
fn a_branch_is_closed_and_opened_again() {
    let place = Place::new();
    line(&place);
    place.write("a.txt", "side\n");
    let side = place.check_in("on the side", Some("side")).unwrap().hash;
    let tags = Tags::of(&place.repository);
    let open = |name: &str| tags.branches().unwrap().into_iter().find(|b| b.name == name).unwrap().open;
    assert!(open("trunk") && open("side"));
    tags.close(&branch("side"), &ann()).unwrap();
    assert!(open("trunk") && !open("side"));
    for &fossil in Fossil::each() {
        assert_eq!(place.by(fossil, &["branch", "ls", "--closed"]).replace('*', "").trim(), "side");
        assert!(!place.by(fossil, &["branch", "ls"]).contains("side"));
    }
    assert_eq!(tags.close(&branch("side"), &ann()).unwrap_err().kind(), Kind::Unchanged);
    assert_eq!(tags.close(&branch("nosuch"), &ann()).unwrap_err().kind(), Kind::NotFound);
    place.write("a.txt", "more\n");
    assert_eq!(place.check_in("refused", None).unwrap_err().kind(), Kind::Closed);
    tags.reopen(&branch("side"), &ann()).unwrap();
    assert!(open("side"));
    assert!(place.fossil(&["branch", "ls"]).contains("side"));
    assert_eq!(tags.reopen(&branch("side"), &ann()).unwrap_err().kind(), Kind::Unchanged);
    place.check_in("goes on", None).unwrap();
    let info = tags.branches().unwrap().into_iter().find(|b| b.name == "side").unwrap();
    assert_eq!((info.check_ins, info.private), (2, false));
    assert_ne!(info.tip, side);
    place.assert_whole();
}

#[test]
fn a_fork_is_closed_with_all_its_leaves() {
    let place = Place::new();
    let [one, ..] = line(&place);
    let root = place.dir.path().join("o");
    Checkout::open(&place.repository, &root, Some(one.as_str()), Some(&ann())).unwrap();
    std::fs::write(root.join("b.txt"), "fork\n").unwrap();
    let plain = |args: &[&str]| Fossil::Reference.run(place.dir.path(), &root, args);
    plain(&["add", "b.txt"]);
    plain(&["commit", "-m", "a fork", "--allow-fork", "--no-warnings"]);
    let tags = Tags::of(&place.repository);
    assert_eq!(place.repository.store().branch_tips(&branch("trunk")).unwrap().len(), 2);
    tags.close(&branch("trunk"), &ann()).unwrap();
    assert!(place.repository.store().branch_closed(&branch("trunk")).unwrap());
    assert!(!tags.branches().unwrap()[0].open);
    tags.reopen(&branch("trunk"), &ann()).unwrap();
    assert_eq!(place.repository.store().branch_tips(&branch("trunk")).unwrap().len(), 2);
}

#[test]
fn c10_the_name_of_an_open_branch_is_seen_before_it_is_taken() {
    let place = Place::new();
    line(&place);
    place.write("a.txt", "side\n");
    place.check_in("on the side", Some("side")).unwrap();
    let other = Checkout::open(&place.repository, &place.dir.path().join("o"), None, Some(&ann())).unwrap();
    std::fs::write(other.root().join("b.txt"), "b\n").unwrap();
    let taken = Tags::of(&place.repository).branches().unwrap();
    assert!(taken.iter().any(|b| b.name == "side" && b.open));
    assert_eq!(check_in(&other, "second of the name", Some("side")).unwrap_err().kind(), Kind::WouldFork);
}

#[test]
fn a_tag_on_a_private_check_in_is_private() {
    let place = Place::new();
    line(&place);
    place.write("a.txt", "secret\n");
    place.fossil(&["commit", "-m", "private", "--private", "--no-warnings", "--hash"]);
    let private = place.checkout.parent().unwrap();
    let tag = Tags::of(&place.repository).add(&private, &name("hidden"), None, false, &ann()).unwrap();
    assert_eq!(
        place.sql(&format!("SELECT count(*) FROM private JOIN blob USING(rid) WHERE uuid='{tag}'")),
        1
    );
}
