//! The pinned sources: what the build takes for Fossil, and what it refuses.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

#[expect(dead_code, reason = "the build script uses the rest")]
#[path = "../src/engine/build/failure.rs"]
mod failure;
#[path = "../src/engine/build/source.rs"]
mod source;
#[path = "../src/engine/build/unpack.rs"]
mod unpack;
#[path = "../src/engine/build/verify.rs"]
mod verify;

use sha3::{Digest, Sha3_256};
use source::Source;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use verify::{Fault, Pin, cards, hex, verify};

const SHA1_OF_HELLO: &str = "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d";
const SHA3_OF_HELLO: &str = "3338be694f50c5f338814986cdf0686453a888b84f424d792af4b9202398f392";

/// A tree of two files, one with each kind of hash, and the pin that fits it.
fn tree() -> (TempDir, Pin) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    for name in ["src/one.c", "src/a b.c"] {
        fs::write(folder.path().join(name), "hello").unwrap();
    }
    let manifest = format!("C x\nF src/one.c {SHA1_OF_HELLO}\nF src/a\\sb.c {SHA3_OF_HELLO} x\nU u\n");
    fs::write(folder.path().join("manifest"), &manifest).unwrap();
    let checkin = hex(&Sha3_256::digest(manifest));
    (folder, Pin { release: "1.0".to_owned(), checkin })
}

fn check(folder: &Path, pin: &Pin) -> Result<Source, String> {
    Source::check("the tree".to_owned(), folder.to_owned(), pin).map_err(|e| e.to_string())
}

#[test]
fn the_committed_pin_is_a_release_and_a_hash() {
    let pin = Pin::parse(include_str!("../vendor/PIN")).unwrap();
    assert!(pin.release.starts_with("2."));
}

#[test]
fn a_pin_without_a_whole_hash_is_refused() {
    assert!(Pin::parse("release=2.28\ncheckin=52445a27f1\n").unwrap_err().contains("52445a27f1"));
    assert!(Pin::parse("release=2.28\n").unwrap_err().contains("checkin="));
}

#[test]
fn an_unchanged_tree_is_accepted_with_either_kind_of_hash() {
    let (folder, pin) = tree();
    assert!(verify(folder.path(), &pin).unwrap().is_empty());
}

#[test]
fn a_tree_of_another_checkin_is_refused_naming_both() {
    let (folder, pin) = tree();
    let other = Pin { checkin: "0".repeat(64), ..pin.clone() };
    let said = check(folder.path(), &other).unwrap_err();
    assert!(said.contains(&pin.checkin) && said.contains(&other.checkin), "{said}");
}

#[test]
fn an_altered_file_is_refused_by_name() {
    for name in ["src/one.c", "src/a b.c"] {
        let (folder, pin) = tree();
        fs::write(folder.path().join(name), "hello!").unwrap();
        assert_eq!(verify(folder.path(), &pin), Err(Fault::Altered(name.to_owned())));
        assert!(check(folder.path(), &pin).unwrap_err().contains(name));
    }
}

#[test]
fn an_altered_manifest_is_refused_even_when_it_fits_the_files() {
    let (folder, pin) = tree();
    let manifest = folder.path().join("manifest");
    let text = fs::read_to_string(&manifest).unwrap().replace("C x", "C y");
    fs::write(&manifest, text).unwrap();
    assert!(matches!(verify(folder.path(), &pin), Err(Fault::WrongCheckin(_))));
}

#[test]
fn a_folder_without_a_manifest_is_refused() {
    let (folder, pin) = tree();
    fs::remove_file(folder.path().join("manifest")).unwrap();
    assert!(matches!(verify(folder.path(), &pin), Err(Fault::NoManifest(_))));
}

#[test]
fn a_missing_file_matters_only_when_it_is_used() {
    let (folder, pin) = tree();
    fs::remove_file(folder.path().join("src/one.c")).unwrap();
    let source = check(folder.path(), &pin).unwrap();
    assert!(source.file("src/a b.c").is_ok());
    assert!(source.file("src/one.c").unwrap_err().what().contains("the tree lacks the file src/one.c"));
}

#[test]
fn escapes_in_an_f_card_are_undone_one_by_one() {
    let name = &cards("F a\\\\sb\\sc 00\n")[0].name;
    assert_eq!(name, "a\\sb c");
}

#[test]
fn an_archive_loses_its_top_folder_and_nothing_lands_outside() {
    let (folder, archive) = archive(&[("top/src/x.c", "x"), ("top/../../escaped", "x"), ("lone", "x")]);
    let to = folder.path().join("in/to");
    unpack::unpack(&archive, &to).unwrap();
    assert_eq!(fs::read_to_string(to.join("src/x.c")).unwrap(), "x");
    assert!(!folder.path().join("escaped").exists() && !folder.path().join("in/escaped").exists());
    assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
}

#[test]
fn what_is_no_archive_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.tar.gz");
    fs::write(&file, "not an archive").unwrap();
    assert!(unpack::unpack(&file, folder.path()).is_err());
}

/// An archive of the named files; their names are written as they are.
fn archive(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar.gz");
    let gzip = flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, content.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
    (folder, path)
}

/// Runs `vendor/fetch` with no network and `cache` as its cache folder.
fn fetch(dest: &Path, cache: &Path, ways: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("vendor/fetch");
    let mut command = Command::new("sh");
    command.arg(script).arg(dest).args(ways).env("XDG_CACHE_HOME", cache);
    for name in ["http_proxy", "https_proxy"] {
        command.env(name, "http://127.0.0.1:1");
    }
    command.output().unwrap()
}

#[test]
fn fetch_takes_a_kept_archive_before_any_network() {
    let folder = tempfile::tempdir().unwrap();
    let pin = Pin::parse(include_str!("../vendor/PIN")).unwrap();
    let kept = format!("ocx/fossil-{}-{}.tar.xz", pin.release, &pin.checkin[..12]);
    fs::create_dir(folder.path().join("ocx")).unwrap();
    fs::write(folder.path().join(kept), "kept").unwrap();
    let out = fetch(&folder.path().join("dest"), folder.path(), &[]);
    assert!(out.status.success());
    assert_eq!(fs::read_to_string(String::from_utf8(out.stdout).unwrap().trim()).unwrap(), "kept");
}

#[test]
fn fetch_says_why_each_way_failed_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let out = fetch(&folder.path().join("dest"), folder.path(), &["cache", "upstream", "elsewhere"]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(!out.status.success() && out.stdout.is_empty());
    for word in ["cache: ", "upstream: ", "elsewhere: ", "OCX_FOSSIL_SRC"] {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
    assert_eq!(fs::read_dir(folder.path().join("dest")).unwrap().count(), 0, "nothing is left behind");
}
