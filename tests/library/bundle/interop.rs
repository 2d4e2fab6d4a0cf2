//! Both ways between OCX and plain Fossil.

use ocx::bundle::Bundle;
use ocx::bundle::{Import, Selection};
use ocx::name::Branch;
use ocx::repo::Repository;

use crate::support::clones::{Clones, assert_whole, count, derived, lines, said, text};
use crate::support::{Fossil, ann};

#[test]
fn what_is_imported_is_what_plain_fossil_derives_anew() {
    let place = Clones::with_history();
    let bundle = place.bundle("b.bundle");
    let imported = place.import(&bundle).unwrap();
    assert_eq!(imported.check_ins.len(), 12);
    assert_eq!((imported.artifacts, imported.present), (bundle.len(), 0));
    assert_whole(&place, place.there.path());
    assert_eq!(derived(place.here.path()), derived(place.there.path()));
    let tip = place.there.store().check_in(&place.tip()).unwrap();
    assert_eq!((tip.comment.as_str(), tip.branch.as_str()), ("a better comment", "side"));
}

#[test]
fn plain_fossil_imports_what_ocx_exports() {
    for &fossil in Fossil::each() {
        let place = Clones::with_history();
        place.bundle("b.bundle");
        said(&place.by(fossil, &["bundle", "import", "--publish", "b.bundle", "-R", "there.fossil"]));
        assert_eq!(derived(place.here.path()), derived(place.there.path()), "{fossil:?}");
        let listed = place.fossil(&["bundle", "ls", "b.bundle", "-R", "there.fossil"]);
        assert!(listed.contains("check-in to side by ann"), "{listed}");
        assert!(listed.contains("file all.txt"), "{listed}");
    }
}

#[test]
fn ocx_imports_what_plain_fossil_exports() {
    for standalone in [true, false] {
        let place = Clones::with_history();
        let mut args = vec!["bundle", "export", "b.bundle", "--from", "root:trunk", "-R", "here.fossil"];
        if standalone {
            args.push("--standalone");
        }
        place.fossil(&args);
        let bundle = Bundle::open(&place.path("b.bundle")).unwrap();
        let imported = place.import(&bundle).unwrap();
        assert_eq!(imported.check_ins.len(), 12, "standalone: {standalone}");
        assert_whole(&place, place.there.path());
        assert_eq!(derived(place.here.path()), derived(place.there.path()));
    }
}

/// On two branches a file ends in two versions that are stored whole, or as deltas from what does not go along.
#[test]
fn of_the_versions_of_a_file_one_goes_whole_and_plain_fossil_takes_the_deltas_from_it() {
    for &fossil in Fossil::each() {
        let place = Clones::new();
        place.edit("a.txt", &text(1));
        let base = place.save("base", None).hash;
        for (number, branch) in [(2, None), (3, Some("side")), (4, Some("other"))] {
            place.checkout.update(base.as_str()).unwrap();
            place.edit("a.txt", &text(number));
            place.save("its own", branch);
        }
        let whole = "SELECT count(*) FROM blob WHERE rid NOT IN (SELECT rid FROM delta) AND size>1000";
        assert!(count(place.here.path(), whole) > 1, "a bundle has nothing to make smaller");
        place.bundle("b.bundle");
        let whole = "SELECT count(*) FROM bblob WHERE delta IS NULL AND notes='file a.txt'";
        assert_eq!(count(&place.path("b.bundle"), whole), 1);
        said(&place.by(fossil, &["bundle", "import", "--publish", "b.bundle", "-R", "there.fossil"]));
        assert_eq!(derived(place.here.path()), derived(place.there.path()), "{fossil:?}");
        assert_whole(&place, place.there.path());
    }
}

#[test]
fn a_delta_from_an_artifact_that_is_here_stays_a_delta() {
    let place = Clones::new();
    place.edit("a.txt", &text(1));
    let first = place.save("first", None).hash;
    let start = place.bundle("start.bundle");
    place.import(&start).unwrap();
    for i in 2..5 {
        place.edit("a.txt", &text(i));
        place.save("more", None);
    }
    // Plain Fossil makes deltas from what it thinks that the receiver has.
    place.fossil(&["bundle", "export", "b.bundle", "--branch", "trunk", "-R", "here.fossil"]);
    let whole = Bundle::open(&place.path("b.bundle")).unwrap();
    let imported = place.import(&whole).unwrap();
    assert_eq!(imported.check_ins.len(), 3);
    assert!(imported.present >= 2, "{imported:?}");
    assert!(!imported.check_ins.contains(&first));
    assert!(count(place.there.path(), "SELECT count(*) FROM delta") > 0);
    assert_whole(&place, place.there.path());
    assert_eq!(derived(place.here.path()), derived(place.there.path()));
}

#[test]
fn a_receiver_with_the_parent_gets_deltas_from_what_it_holds() {
    let place = Clones::with_history();
    place.import(&place.bundle("start.bundle")).unwrap();
    let have = place.tip();
    // The older version becomes a delta from the newer, so go back and build the export's deltas on old ones.
    for i in 20..24 {
        place.edit("all.txt", &text(i));
        place.save("later", None);
    }
    let path = place.path("more.bundle");
    let selection = Selection::branch(Branch::parse("side").unwrap()).for_one_who_has(have);
    let exported = place.here.export_bundle(&path, &selection).unwrap();
    assert_eq!(exported.check_ins.len(), 4);
    let bundle = Bundle::open(&path).unwrap();
    assert!(bundle.len() < 12, "{}", bundle.len());
    place.import(&bundle).unwrap();
    assert_whole(&place, place.there.path());
    assert_eq!(derived(place.here.path()), derived(place.there.path()));
}

#[test]
fn imported_check_ins_are_sent_by_the_next_push() {
    let place = Clones::with_history();
    std::fs::copy(place.there.path(), place.path("third.fossil")).unwrap();
    place.import(&place.bundle("b.bundle")).unwrap();
    let there = place.there.path();
    assert_eq!(count(there, "SELECT count(*) FROM private"), 0);
    let unsent = count(there, "SELECT count(*) FROM unsent");
    assert_eq!(unsent, count(there, "SELECT count(*) FROM blob") - 1);
    assert_eq!(count(there, "SELECT count(*) FROM unclustered WHERE rid>1"), unsent);
    let receipt = place.there.store().receipt(&place.tip()).unwrap().unwrap();
    assert_eq!(receipt.user, "ann");
    // By plain Fossil, to a third repository that has nothing of it.
    place.fossil(&["push", "third.fossil", "--once", "-R", "there.fossil"]);
    assert_eq!(derived(&place.path("third.fossil")), derived(there));
}

#[test]
fn the_repository_grows_by_little_more_than_the_bundle() {
    let place = Clones::new();
    for i in 0..60 {
        place.edit("a.txt", &text(i));
        place.edit("b.txt", &lines(400, |n| n * (i + 1) * 7919));
        place.save("more", None);
    }
    let bundle = place.bundle("b.bundle");
    let pages = |path| count(path, "SELECT page_count*page_size FROM pragma_page_count, pragma_page_size");
    let before = pages(place.there.path());
    place.import(&bundle).unwrap();
    let grown = pages(place.there.path()) - before;
    let size = i64::try_from(bundle.size()).unwrap();
    assert!(grown * 10 <= size * 12 + 10 * 64 * 1024, "{grown} bytes for a bundle of {size}");
}

#[test]
fn an_import_by_a_user_who_is_not_there_is_refused() {
    let place = Clones::with_history();
    let import = Import::by(ocx::name::User::parse("zed").unwrap());
    let refused = place.there.import_bundle(&place.bundle("b.bundle"), &import).unwrap_err();
    assert_eq!(refused.kind(), ocx::error::Kind::NotFound);
}

#[test]
fn an_artifact_whose_basis_is_lost_is_made_whole_again() {
    let place = Clones::with_history();
    place.import(&place.bundle("b.bundle")).unwrap();
    let expected = derived(place.there.path());
    // A content that others are deltas from is lost, as after a sync that broke off.
    let db = rusqlite::Connection::open(place.there.path()).unwrap();
    let sql = "SELECT srcid FROM delta WHERE srcid NOT IN (SELECT rid FROM delta) LIMIT 1";
    let lost: i64 = db.query_row(sql, [], |row| row.get(0)).unwrap();
    db.execute("UPDATE blob SET size=-1, content=NULL WHERE rid=?1", [lost]).unwrap();
    db.execute("INSERT INTO phantom VALUES(?1)", [lost]).unwrap();
    drop(db);
    let imported = place.import(&Bundle::open(&place.path("b.bundle")).unwrap()).unwrap();
    assert!(imported.artifacts > 1, "{imported:?}");
    place.there.verify().unwrap();
    assert_eq!(derived(place.there.path()), expected);
}

#[test]
fn what_a_bundle_names_and_nobody_has_is_said() {
    let place = Clones::with_history();
    let bundle = place.bundle("b.bundle");
    drop(bundle);
    let db = rusqlite::Connection::open(place.path("b.bundle")).unwrap();
    let sql = "DELETE FROM bblob WHERE blobid=(SELECT max(blobid) FROM bblob WHERE notes LIKE 'file %'
                 AND blobid NOT IN (SELECT delta FROM bblob WHERE typeof(delta)='integer')) RETURNING uuid";
    let left_out: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(db);
    let imported = place.import(&Bundle::open(&place.path("b.bundle")).unwrap()).unwrap();
    assert_eq!(imported.gaps.iter().map(ocx::name::Hash::as_str).collect::<Vec<_>>(), [left_out]);
}

#[test]
fn one_opened_bundle_is_linked_in_by_each_repository_that_takes_it() {
    let place = Clones::with_history();
    let bundle = place.bundle("b.bundle");
    let second = place.path("second.fossil");
    std::fs::copy(place.there.path(), &second).unwrap();
    let second = Repository::open(&second).unwrap();
    let first = place.import(&bundle).unwrap();
    let again = second.import_bundle(&bundle, &Import::by(ann())).unwrap();
    assert_eq!(again, first);
    assert_eq!(derived(second.path()).len(), derived(place.there.path()).len());
}
