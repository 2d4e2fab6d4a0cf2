//! What goes into a bundle, and the commands.

use ocx::bundle::Bundle;
use ocx::bundle::Selection;
use ocx::error::Kind;
use ocx::name::{Branch, Hash};
use rusqlite::Connection;
use serde_json::Value;

use crate::support::clones::{Clones, count, said};

/// The check-ins of a selection, by their comments.
fn comments(place: &Clones, name: &str, selection: &Selection) -> Vec<String> {
    place.here.export_bundle(&place.path(name), selection).unwrap();
    let contents = Bundle::open(&place.path(name)).unwrap().contents().unwrap();
    contents.check_ins.into_iter().map(|c| c.comment).collect()
}

#[test]
fn each_selection_holds_what_it_says() {
    let place = Clones::with_history();
    let all = place.here.store().descendants(&place.root()).unwrap();
    let named = |range: std::ops::Range<usize>| range.map(|i| format!("edit {i}")).collect::<Vec<_>>();
    assert_eq!(comments(&place, "branch", &Selection::branch(Branch::parse("side").unwrap())), named(6..12));
    assert_eq!(comments(&place, "range", &Selection::range(all[2], all[4])), named(2..5));
    assert_eq!(comments(&place, "one", &Selection::one(all[3])), named(3..4));
    assert_eq!(comments(&place, "later", &Selection::descendants(all[8])), named(9..12));
    let news = Selection::descendants(place.root()).for_one_who_has(all[9]);
    place.here.export_bundle(&place.path("news"), &news).unwrap();
    let bundle = Bundle::open(&place.path("news")).unwrap();
    let contents = bundle.contents_with(place.here.store()).unwrap();
    assert_eq!(contents.check_ins.len(), 2);
    let tip = &contents.check_ins[1];
    assert_eq!((tip.user.as_str(), tip.parents.as_slice()), ("ann", &[all[10]][..]));
}

#[test]
fn tags_go_along_and_what_is_unknown_is_told() {
    let place = Clones::with_history();
    let tags = place.bundle("all").contents().unwrap();
    assert_eq!(tags.other_controls, 2);
    assert_eq!(tags.check_ins[6].branch.as_deref(), Some("side"));
    assert_eq!(tags.check_ins[11].branch.as_deref(), Some("side"));
    let refused =
        |selection: &Selection| place.here.export_bundle(&place.path("x"), selection).unwrap_err().kind();
    assert_eq!(refused(&Selection::branch(Branch::parse("nosuch").unwrap())), Kind::NotFound);
    assert_eq!(refused(&Selection::range(place.tip(), place.root())), Kind::Invalid);
    assert_eq!(refused(&Selection::descendants(place.tip())), Kind::Unchanged);
    assert_eq!(refused(&Selection::one(Hash::of(b"unknown"))), Kind::NotFound);
    let none = Selection::one(place.tip()).for_one_who_has(place.tip());
    assert_eq!(refused(&none), Kind::Unchanged);
    assert!(!place.path("x").exists());
}

#[test]
fn private_and_shunned_artifacts_stay_here() {
    let place = Clones::with_history();
    let all = place.here.store().descendants(&place.root()).unwrap();
    let file =
        place.here.store().files(&all[11]).unwrap()[&ocx::name::TreePath::parse("all.txt").unwrap()].hash;
    let db = Connection::open(place.here.path()).unwrap();
    db.execute("INSERT INTO private SELECT rid FROM blob WHERE uuid=?1", [all[10].as_str()]).unwrap();
    db.execute("INSERT INTO shun(uuid,mtime) VALUES(?1,1)", [file.as_str()]).unwrap();
    drop(db);
    place.bundle("b");
    let inside =
        |hash: &Hash| count(&place.path("b"), &format!("SELECT count(*) FROM bblob WHERE uuid='{hash}'"));
    assert_eq!((inside(&all[9]), inside(&all[10]), inside(&all[11]), inside(&file)), (1, 0, 1, 0));
    // Its rows may have been deltas from what stays here.
    assert!(Bundle::open(&place.path("b")).unwrap().is_standalone());
}

#[test]
fn the_commands_export_list_verify_and_import() {
    let place = Clones::with_history();
    let ocx = |args: &[&str]| said(&place.ocx(args));
    let out = ocx(&["bundle", "export", "b", "--branch", "side", "-R", "here.fossil", "--json"]);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(out["check_ins"].as_array().unwrap().len(), 6, "{out}");
    ocx(&["bundle", "export", "w", "--from", "root:side", "--to", "side", "-R", "here.fossil", "--wire"]
        .map(|word| if word == "root:side" { "trunk" } else { word }));
    let listed = ocx(&["bundle", "ls", "w"]);
    assert!(listed.contains("on side: edit 6") && listed.contains("edit 11"), "{listed}");
    assert!(ocx(&["bundle", "verify", "b"]).contains("artifacts verified: 6 check-ins"));
    let refused = place.ocx(&["bundle", "export", "b", "--branch", "side", "-R", "here.fossil"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is there already"));
    ocx(&["bundle", "export", "all", "--descendants", place.root().as_str(), "-R", "here.fossil"]);
    let took = ocx(&["bundle", "import", "all", "-R", "there.fossil", "--user", "ann"]);
    assert!(took.starts_with("Took in 12 check-ins;"), "{took}");
    let again = ocx(&["bundle", "import", "w", "-R", "there.fossil", "--user", "ann", "--json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["artifacts"], 0, "{again}");
}
