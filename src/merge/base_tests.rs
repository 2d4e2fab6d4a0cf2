//! The base and the renames, compared with plain Fossil on random histories.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::*;
use crate::error::Kind;
use crate::name::{Hash, TreePath};
use crate::plain_fossil::PlainFossil;
use crate::repo::Store;

/// Random numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

/// Adds check-ins without content: only how they descend from each other, and when they were made.
fn history(fossil: &PlainFossil, round: usize, random: &mut Random) -> Vec<Hash> {
    let hashes: Vec<Hash> = (0..14).map(|n| Hash::of(format!("{round} {n}").as_bytes())).collect();
    let mut sql = String::from("BEGIN;");
    let first = 1000 + round * 100;
    let criss_cross = round.is_multiple_of(3);
    for (n, hash) in hashes.iter().enumerate() {
        let rid = first + n;
        // Some clocks are wrong.
        let time = 2_461_000 + n * 10 + if random.below(6) == 0 { random.below(90) } else { 45 };
        let _ = write!(
            sql,
            "INSERT INTO blob(rid,rcvid,size,uuid,content) VALUES({rid},1,1,'{hash}',x'00');
             INSERT INTO event(type,mtime,objid,user,comment) VALUES('ci',{time}.25,{rid},'ann','');"
        );
        let parents = if n == 0 { 0 } else { 1 + usize::from(random.below(3) == 0 || criss_cross) };
        for at in 0..parents {
            let parent = first + n.saturating_sub(1 + random.below(4));
            let _ = write!(
                sql,
                "INSERT OR IGNORE INTO plink(pid,cid,isprim,mtime) VALUES({parent},{rid},{},{time}.25);",
                at == 0
            );
        }
    }
    fossil.db().execute_batch(&(sql + "COMMIT;")).unwrap();
    hashes
}

#[test]
fn the_base_is_fossils_in_random_histories_criss_cross_too() {
    let fossil = PlainFossil::new();
    let mut random = Random(88_172_645_463_325_252);
    let (mut compared, mut without) = (0, 0);
    for round in 0..40 {
        let hashes = history(&fossil, round, &mut random);
        let store = Store::open(fossil.repository()).unwrap();
        for _ in 0..8 {
            let pick: Vec<Hash> =
                (0..2 + random.below(2)).map(|_| hashes[random.below(hashes.len())]).collect();
            let args = std::iter::once("merge-base").chain(pick.iter().map(Hash::as_str));
            let output = fossil.try_run(args);
            let printed = String::from_utf8_lossy(&output.stdout);
            let expected = printed.trim().strip_prefix("pivot=").map(|hash| Hash::parse(hash).unwrap());
            assert!(expected.is_some() || printed.contains("No common ancestor"), "{output:?}");
            assert_eq!(
                common_ancestor(&store, &pick[0], &pick[1..]).unwrap(),
                expected,
                "round {round}: {pick:?}"
            );
            compared += 1;
            without += usize::from(expected.is_none());
        }
    }
    assert!(compared == 320 && without < 100, "{without} of {compared} had no ancestor in common");
}

/// A real history with renames, swaps, removals and merges on two branches.
fn renaming(fossil: &PlainFossil, random: &mut Random) {
    for name in ["a", "b", "c", "d"] {
        fossil.write(name, format!("{name}\n1\n2\n3\n"));
    }
    fossil.commit("02-01 10:00:00", "base", &[]);
    for n in 0..12 {
        let branch = ["trunk", "side"][random.below(2)];
        if n > 1 {
            fossil.run(["update", branch]);
        }
        let tracked = fossil.run(["ls"]);
        let tracked: Vec<&str> = tracked.lines().collect();
        if n > 2 && random.below(3) == 0 {
            fossil.try_run(["merge", if branch == "side" { "trunk" } else { "side" }]);
        } else {
            for _ in 0..=random.below(2) {
                let old = tracked[random.below(tracked.len())];
                if random.below(5) == 0 && tracked.len() > 2 {
                    fossil.try_run(["rm", "--hard", old]);
                } else {
                    fossil.try_run(["mv", "--hard", old, &format!("n{n}{old}")]);
                }
            }
        }
        fossil.write(&format!("made{n}"), format!("{n}\n"));
        let date = format!("02-02 10:{:02}:00", n + 10);
        let more: &[&str] = if n == 1 { &["--branch", "side"] } else { &["--allow-conflict"] };
        fossil.commit(&date, &format!("step {n}"), more);
    }
}

#[test]
fn renames_are_fossils_on_the_way_to_a_descendant_and_the_same_on_the_way_back() {
    let mut compared = 0;
    for seed in [5_u64, 77, 4242] {
        let fossil = PlainFossil::new();
        let mut random = Random(seed * 7_919);
        renaming(&fossil, &mut random);
        let store = Store::open(fossil.repository()).unwrap();
        let all = fossil.sql("SELECT uuid FROM blob JOIN event ON objid=rid WHERE type='ci' ORDER BY rid");
        let all: Vec<Hash> = all.iter().map(|hash| Hash::parse(hash).unwrap()).collect();
        for from in &all {
            let mut args = vec!["test-name-changes"];
            args.extend(all.iter().flat_map(|to| [from.as_str(), to.as_str()]));
            let printed = fossil.run(args);
            for (part, to) in printed.split("------ Changes for ").skip(1).zip(&all) {
                let files = (store.files(from).unwrap(), store.files(to).unwrap());
                let told: BTreeMap<TreePath, TreePath> = part
                    .lines()
                    .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']')?.split_once("] -> ["))
                    .map(|(old, new)| (TreePath::parse(new).unwrap(), TreePath::parse(old).unwrap()))
                    .filter(|(new, old)| new != old && files.0.contains_key(old) && files.1.contains_key(new))
                    .collect();
                let mut ours = renames(&store, from, to).unwrap();
                ours.retain(|new, old| files.0.contains_key(old) && files.1.contains_key(new));
                let mut back = renames(&store, to, from).unwrap();
                back.retain(|new, old| files.1.contains_key(old) && files.0.contains_key(new));
                let back: BTreeMap<TreePath, TreePath> =
                    back.into_iter().map(|(new, old)| (old, new)).collect();
                assert_eq!(ours, back, "from {from} to {to} and back");
                if primary_line(&store, to).contains(from) {
                    assert_eq!(ours, told, "from {from} to {to}");
                    compared += told.len();
                }
            }
        }
    }
    assert!(compared > 60, "{compared} renames");
}

/// A check-in and its primary ancestors.
fn primary_line(store: &Store, from: &Hash) -> Vec<Hash> {
    let parent = |hash: &Hash| store.check_in(hash).unwrap().parents.first().copied();
    std::iter::successors(Some(*from), parent).collect()
}

/// A base, and the branch `side` with an edit, a rename and a new file.
fn two_branches() -> (PlainFossil, Store) {
    let fossil = PlainFossil::new();
    fossil.write("a", "1\n2\n3\n4\n");
    fossil.write("b", "b\n");
    fossil.commit("02-01 10:00:00", "base", &["--tag", "base"]);
    fossil.write("a", "1\n2\n3\nside\n");
    fossil.run(["mv", "--hard", "b", "moved"]);
    fossil.write("new", "new\n");
    fossil.commit("02-02 10:00:00", "side", &["--branch", "side"]);
    fossil.run(["update", "trunk"]);
    fossil.write("a", "trunk\n2\n3\n4\n");
    fossil.write("b", "edited\n");
    fossil.commit("02-03 10:00:00", "trunk", &[]);
    let store = Store::open(fossil.repository()).unwrap();
    (fossil, store)
}

fn merged(store: &Store, ours: &str, theirs: &str, how: MergeHow) -> crate::error::Result<Merged> {
    in_memory(store, &store.resolve(ours).unwrap(), &store.resolve(theirs).unwrap(), how)
}

/// The files of the result with their texts.
fn texts(store: &Store, merged: &Merged) -> String {
    let text = |file: &MergedFile| match &file.content {
        Some(content) => content.clone(),
        None => store.content(&file.entry.hash).unwrap(),
    };
    let files = merged.tree.iter();
    files.fold(String::new(), |all, (path, file)| {
        all + &format!("{path}={} ", String::from_utf8(text(file)).unwrap().replace('\n', "/"))
    })
}

#[test]
fn two_check_ins_are_merged_in_memory_in_each_way() {
    let (_fossil, store) = two_branches();
    for how in [MergeHow::Whole, MergeHow::Integrate, MergeHow::Cherrypick] {
        let merged = merged(&store, "trunk", "side", how).unwrap();
        assert_eq!(texts(&store, &merged), "a=trunk/2/3/side/ moved=edited/ new=new/ ", "{how:?}");
        assert_eq!((merged.conflicts.len(), merged.base), (0, store.resolve("base").unwrap()));
        assert_eq!(merged.tree[&TreePath::parse("moved").unwrap()].from.as_ref().unwrap().as_str(), "b");
    }
    let back = merged(&store, "side", "side", MergeHow::Backout).unwrap();
    assert_eq!(texts(&store, &back), "a=1/2/3/4/ b=b/ ");
    let e = merged(&store, "trunk", "base", MergeHow::Whole).unwrap_err();
    assert_eq!(e.kind(), Kind::Unchanged);
    let first = store.check_in(&store.resolve("base").unwrap()).unwrap().parents[0];
    let e = in_memory(&store, &store.resolve("trunk").unwrap(), &first, MergeHow::Backout).unwrap_err();
    assert_eq!(e.kind(), Kind::Invalid);
}

#[test]
fn what_is_not_saved_yet_is_followed_through_both_renames() {
    let (_fossil, store) = two_branches();
    let (base, side) = (store.resolve("base").unwrap(), store.resolve("side").unwrap());
    let parent = Side::of(&store, &base, &side).unwrap();
    let path = |text: &str| TreePath::parse(text).unwrap();
    let mut files = parent.files.clone();
    let entry = files.remove(&path("moved")).unwrap();
    files.insert(path("again"), entry);
    files.insert(path("moved"), entry);
    let now = parent.with(files, &BTreeMap::from([(path("again"), path("moved"))]));
    assert_eq!(now.renames, BTreeMap::from([(path("again"), path("b"))]));
}
