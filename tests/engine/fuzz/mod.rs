//! Hostile bytes for everything that reads what others wrote: nothing panics, hangs or takes memory by a claimed
//! length, and what Rust says of an artifact is what Fossil's own parser says.
//!
//! `OCX_FUZZ_CASES` is how many inputs each target gets; the default suits every test run.

mod bundles;
mod mutate;
mod values;

use std::cell::RefCell;
use std::fs;

use md5::{Digest, Md5};
use mutate::mutated;
use ocx::engine;
use ocx::format::artifact::{Manifest, looks_like_artifact};
use ocx::format::{delta, packed};
use proptest::prelude::*;

/// The most bytes that an input may expand to here.
const MAX: usize = 1 << 20;
const BASE: &[u8] = b"The quick brown fox jumps over the lazy dog, again and again and again.\n";

fn config(default: u32) -> ProptestConfig {
    let cases = std::env::var("OCX_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// For a target whose every input makes a repository: a tenth of what others get.
fn costly_config(default: u32) -> ProptestConfig {
    let usual = config(default * 10);
    ProptestConfig { cases: (usual.cases / 10).max(1), ..usual }
}

/// Deltas on `BASE`, as Fossil makes them.
fn deltas() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (base, target, made) = (path("base"), path("target"), path("delta"));
    fs::write(&base, BASE).unwrap();
    let text = String::from_utf8_lossy(BASE);
    let targets = [text.repeat(3), text.replace("fox", "bear"), String::new(), "unlike it".to_owned()];
    let delta = |content: String| {
        fs::write(&target, content).unwrap();
        engine::command(folder.path(), &["test-delta-create", &base, &target, &made], None).unwrap();
        fs::read(&made).unwrap()
    };
    targets.map(delta).to_vec()
}

fn artifacts() -> Vec<Vec<u8>> {
    let hash = "a".repeat(64);
    let short = "b".repeat(40);
    [
        format!("C a\\scomment\nD 2026-11-30T10:23:45.120\nF a.txt {hash}\nF dir/b.sh {short} x\nF l {hash} l was\nP {hash} {short}\nQ +{short}\nR d41d8cd98f00b204e9800998ecf8427e\nT *branch * x\nT *sym-x *\nU ann\n"),
        format!("B {hash}\nC c\nD 2026-11-30T10:23:45\nF gone\nF new {hash}\nN text/x-markdown\nP {hash}\nT +bgcolor * #ffffff\nU ann\n"),
        format!("D 2026-11-30T10:23:45\nT +audited {hash} pass\nT -closed {short}\nU ann\n"),
        "D 2026-11-30T10:23:45\nL Home\nN text/x-markdown\nU ann\nW 5\nhello\n".to_owned(),
        "D 2026-11-30T10:23:45\nH a\\stitle\nN text/x-markdown\nU ann\nW 3\nabc\n".to_owned(),
        format!("D 2026-11-30T10:23:45\nG {hash}\nI {hash}\nN text/x-markdown\nP {hash}\nU ann\nW 0\n\n"),
        format!("A file.txt {hash} {short}\nC note\nD 2026-11-30T10:23:45\nU ann\n"),
        format!("D 2026-11-30T10:23:45\nJ +title a\\sb\nJ status open\nK {short}\nU ann\n"),
        format!("C t\nD 2026-11-30T10:23:45\nE 2026-11-29T10:23:45 {short}\nN text/plain\nT +bgcolor * x\nU ann\nW 1\na\n"),
        format!("M {hash}\nM {short}\n"),
    ]
    .map(|text| sealed(text.as_bytes()))
    .to_vec()
}

/// `text` with the checksum that Fossil wants at its end.
pub fn sealed(text: &[u8]) -> Vec<u8> {
    let end = text.windows(3).rposition(|w| w == b"\nZ ").map_or(text.len(), |n| n + 1);
    let mut sealed = text[..end].to_vec();
    let sum = Md5::digest(&sealed);
    sealed.extend(b"Z ");
    sealed.extend(sum.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
    sealed.push(b'\n');
    sealed
}

/// Whether Fossil's own parser takes `content` for an artifact.
fn fossil_takes(content: &[u8]) -> bool {
    thread_local! {
        static FOLDER: RefCell<tempfile::TempDir> = RefCell::new(tempfile::tempdir().unwrap());
    }
    FOLDER.with_borrow(|folder| {
        let path = folder.path().join("artifact");
        fs::write(&path, content).unwrap();
        let args = ["test-parse-manifest", path.to_str().unwrap()];
        let said = engine::command(folder.path(), &args, None).unwrap().out;
        assert!(!said.contains("disagree"), "{said}");
        said.contains("manifest_parse() worked")
    })
}

#[test]
fn the_seeds_are_right() {
    for delta in deltas() {
        delta::apply(BASE, &delta, MAX).unwrap();
    }
    for artifact in artifacts() {
        assert!(fossil_takes(&artifact), "{}", String::from_utf8_lossy(&artifact));
        assert!(looks_like_artifact(&artifact));
    }
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn a_delta_gives_what_it_says_or_an_error(delta in mutated(deltas())) {
        if let Ok(made) = delta::apply(BASE, &delta, MAX) {
            prop_assert_eq!(made.len(), delta::target_size(&delta).unwrap());
        }
    }

    #[test]
    fn a_packed_content_gives_the_size_that_it_claims_or_an_error(
        bytes in mutated(vec![packed::pack(BASE).unwrap(), packed::pack(b"").unwrap(), packed::pack(&[0; 5000]).unwrap()])
    ) {
        if let Ok(content) = packed::unpack(&bytes, MAX) {
            let claimed = bytes.first_chunk().map_or(0, |size| u32::from_be_bytes(*size));
            prop_assert_eq!(content.len(), claimed as usize);
        }
    }
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn content_is_an_artifact_where_fossil_says_so(bytes in mutated(artifacts()), seal in prop::bool::weighted(0.9)) {
        let content = if seal { sealed(&bytes) } else { bytes };
        let takes = fossil_takes(&content);
        prop_assert!(!takes || looks_like_artifact(&content), "Fossil takes what we took for a file");
        if let Ok(manifest) = Manifest::parse(&content) {
            prop_assert!(takes, "we read a check-in where Fossil sees none: {:?}", manifest);
        }
    }
}
