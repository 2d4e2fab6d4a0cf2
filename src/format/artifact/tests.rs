use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::error::Kind;
use crate::name::Hash;
use crate::plain_fossil::PlainFossil;

const HASH: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

/// The Z card for `body`.
pub(crate) fn z_card(body: &[u8]) -> String {
    format!("Z {}\n", checksum(body))
}

fn with_z(body: &str) -> Vec<u8> {
    format!("{body}{}", z_card(body.as_bytes())).into_bytes()
}

/// Whether plain Fossil's parser takes `content`; a crash counts as taken.
fn fossil_takes(fossil: &PlainFossil, content: &[u8]) -> bool {
    let file = fossil.write("../candidate", content);
    let output = fossil.try_run(["test-parse-manifest", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout);
    output.status.code().is_none() || said.contains("manifest_parse() worked")
}

/// Whether the parser of the Fossil that is compiled in takes `content`, which must not crash it.
fn engine_takes(fossil: &PlainFossil, content: &[u8]) -> bool {
    let file = fossil.write("../candidate", content);
    let args = ["test-parse-manifest", file.to_str().unwrap()];
    let output = crate::engine::command(&fossil.tree(), &args, Some("ann")).unwrap();
    output.out.contains("manifest_parse() worked")
}

/// Texts, but for the Z card, that are artifacts of each kind or miss being one by a little. `<D>`: a D
/// card; `<H>`, `<K>`: a SHA1 and a SHA3 hash; `<39>`: so many digits of one; `<101>`: so many letters.
const BODIES: &[&str] = &[
    // Check-ins.
    "C x\n<D>\nF base.txt <H>\nP <H>\nT *branch * trunk\nT *sym-trunk *\nU admin\n",
    "<D>\nP <K> <H>\n",
    "C x\n<D>\nP\n",
    "C \n<D>\nU\n",
    "C\n<D>\nU\n",
    "B <H>\nC x\n<D>\nF gone\nF there <K> x old\\sname\nU a\n",
    "C x\n<D>\nF gone\nU a\n",
    "C x\n<D>\nF ../up <H>\n",
    "C x\n<D>\nF a//b <H>\n",
    "C x\n<D>\nF a/ <H>\n",
    "C x\n<D>\nF /a <H>\n",
    "C x\n<D>\nF a <H> x ./old\n",
    "C x\n<D>\nF b <H>\nF a <H>\n",
    "C x\n<D>\nF a <H>\nF a <H>\n",
    "C x\n<D>\nF _FOSSIL_ <H>\nF a <H>\n",
    "C x\n<D>\nF a <H> x b c\n",
    "C x\n<D>\nF a <UPPER>\n",
    "C x\n<D>\nF a <39>\n",
    "C x\n<D>\nQ +<H>\nQ -<H> <H>\nR <32>\nU a\n",
    "C x\n<D>\nQ <H>\n",
    "C x\n<D>\nR <31>\n",
    "C x\nC y\n<D>\n",
    "<D>\nC x\n",
    "C x\n<D>\n<D>\n",
    "C x\nD nonsense\nU a\n",
    "C x\nD 2026-11-30\nU a\n",
    "C x\nD 2451545.5\nU a\n",
    "C x\nD now\nU a\n",
    "C x\nD 2026-13-30\nU a\n",
    "C x\nD 2026-02-30T10:00:00\nU a\n",
    "C x\nU a\n",
    "C x\n<D>\nT +abc <H>\n",
    "C x\n<D>\nT abcx <H>\n",
    "C x\n<D>\nT +a-tag <H> value\\swith\\nescapes\nT +b-tag *\n",
    "C x\n<D>\nT +b-tag *\nT +a-tag *\n",
    "C x\n<D>\nT +tag <H>\nT +tag *\n",
    "C x\n<D>\nT +tag *\nT +tag <H>\n",
    "C x\n<D>\nT +tag\n",
    "C x\n<D>\nU a b\n",
    "C x y\n<D>\nU a\n",
    "C x\r\n<D>\r\nU a\r\n",
    "C x\n<D>\n\nU a\n",
    "C x\n<D>\nN text/plain\nP <H>\nU a\n",
    "C x\n<D>\nW 2\nab\n",
    "C x\0y\n<D>\nU a\n",
    "C x\\0y\n<D>\nU a\\\n",
    // Clusters.
    "M <H>\nM <K>\n",
    "M <K>\nM <H>\n",
    "M <H>\nM <H>\n",
    "<D>\nM <H>\n",
    // Tags.
    "<D>\nT +closed <H> why\\snot\nU ann\n",
    "<D>\nT -closed *\nU ann\n",
    "<D>\nT *bgcolor <H> #ff0000\n",
    "<D>\nU ann\n",
    // Wiki.
    "<D>\nL A\\sPage\nN text/x-markdown\nP <H>\nU ann\nW 5\nhello\n",
    "<D>\nL A\\sPage\nU ann\nW 0\n\n",
    "<D>\nL A\\sPage\nU ann\nW 5x\nhello\n",
    "<D>\nL A\\sPage\nU ann\nW 4\nhello\n",
    "<D>\nL A\\sPage\nU ann\nW 6\nhello\n",
    "<D>\nL A\\sPage\nU ann\nW 500\nhello\n",
    "<D>\nL A\\s\\sPage\nU ann\nW 5\nhello\n",
    "<D>\nL <101>\nU ann\nW 5\nhello\n",
    "<D>\nL <100>\nU ann\nW 5\nhello\n",
    "<D>\nL A\\sPage\nU ann\nW 4294967296\nhello\n",
    "<D>\nL A\nU ann\nW 12\nD 2020\nU bob\n\n",
    "C comment\n<D>\nL A\nU ann\nW 1\nx\n",
    // Tickets.
    "<D>\nJ +comment text\nJ status Open\nK <H>\nU ann\n",
    "<D>\nJ status Open\nJ +comment text\nK <H>\nU ann\n",
    "<D>\nJ status\nK <H>\nU\n",
    "<D>\nJ status Open\nK <K>\nU ann\n",
    "<D>\nJ status Open\nK\nU ann\n",
    // Attachments.
    "A file.txt <H> <K>\nC why\n<D>\nU ann\n",
    "A file.txt A\\sPage\n<D>\n",
    "A file.txt A\\sPage <H> more\n<D>\n",
    "A ../x A\\sPage <H>\n<D>\n",
    "A file.txt A\\s\n<D>\n",
    // Technotes.
    "C t\n<D>\nE 2026-11-30T00:00:00 <H>\nN text/plain\nP <H>\nT +bgcolor * red\nU a\nW 1\nx\n",
    "C t\n<D>\nE 2026-11-30T00:00:00 <H>\nP <H>\nN text/plain\nU a\nW 1\nx\n",
    "C t\n<D>\nE 2026-11-30T00:00:00 <H>\nT *bgcolor * red\nU a\nW 1\nx\n",
    "C t\n<D>\nE 2026-11-30T00:00:00 <H>\nT +bgcolor <H> red\nU a\nW 1\nx\n",
    "C t\n<D>\nE never <H>\nU a\nW 1\nx\n",
    // Forum posts.
    "<D>\nH A\\stitle\nN text/plain\nU ann\nW 1\nx\n",
    "<D>\nG <H>\nI <H>\nU ann\nW 1\nx\n",
    "<D>\nG <H>\nH title\nI <H>\nU ann\nW 1\nx\n",
    "<D>\nG <H>\nI <H>\nP <H> <K>\nU ann\nW 1\nx\n",
    "<D>\nG <H>\nI <H>\nP <H>\nU ann\nW 1\nx\n",
    // Not one at all.
    "hello world, this is text\n",
    "A\n",
    "C x\n<D>\nX what\n",
];

/// The bodies with their Z cards, and texts whose fault lies in what stands around the cards.
fn candidates() -> Vec<Vec<u8>> {
    let filled = |body: &&str| {
        let h64 = "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a";
        let mut text = body.replace("<D>", "D 2026-11-30T10:23:45").replace("<H>", HASH).replace("<K>", h64);
        for digits in [31, 32, 39] {
            text = text.replace(&format!("<{digits}>"), &HASH[..digits]);
        }
        for letters in [100, 101] {
            text = text.replace(&format!("<{letters}>"), &"x".repeat(letters));
        }
        text.replace("<UPPER>", &HASH.to_uppercase())
    };
    let bodies: Vec<String> = BODIES.iter().map(filled).collect();
    let mut all: Vec<Vec<u8>> = bodies.iter().map(|body| with_z(body)).collect();
    let good = with_z(&bodies[0]);
    let text = String::from_utf8(good.clone()).unwrap();
    let signed = |begin: &str, end: &str| {
        format!(
            "-----BEGIN {begin} SIGNED MESSAGE-----\nHash: SHA1\n\n{text}-----BEGIN {end} SIGNATURE-----\nabc\n"
        )
    };
    all.extend([
        good[..good.len() - 1].to_vec(),
        [&good[..], b"\n"].concat(),
        [&good[..], b"Z d41d8cd98f00b204e9800998ecf8427e\n"].concat(),
        [&good[..], &b"Z d41d8cd98f00b204e9800998ecf8427e"[..], b" \n"].concat(),
        [b"\n", &good[..]].concat(),
        [b" ", &good[..]].concat(),
        [b"\xef\xbb\xbf", &good[..]].concat(),
        text.replace("U admin", "U admim").into_bytes(),
        text.replace('\n', "\r\n").into_bytes(),
        bodies[0].clone().into_bytes(),
        [&good[..good.len() - 5], b"ZZZZ\n"].concat(),
        [bodies[0].as_bytes(), b"Z 00000000000000000000000000000000\n\0\n"].concat(),
        [&good[..], b"\0\n"].concat(),
        [&good[..], b"\0 \n"].concat(),
        signed("PGP", "PGP").into_bytes(),
        signed("PGP", "PGP").replace("\n\n", "\r\n\r\n").into_bytes(),
        signed("PGP", "PGP").replace("\n\n", "\n").into_bytes(),
        signed("PGP", "NO").into_bytes(),
        b"-----BEGIN PGP SIGNED MESSAGE-----\n\n".to_vec(),
        b"".to_vec(),
        b"\n".to_vec(),
    ]);
    all
}

#[test]
fn c14_what_fossil_takes_for_an_artifact_and_nothing_else_looks_like_one() {
    let fossil = PlainFossil::new();
    let (mut taken, mut left) = (0, 0);
    for content in candidates() {
        let expected = fossil_takes(&fossil, &content);
        assert_eq!(looks_like_artifact(&content), expected, "{}", content.escape_ascii());
        if expected { taken += 1 } else { left += 1 }
    }
    assert!(taken > 30 && left > 40, "{taken} taken, {left} left");
}

#[test]
fn c14_the_compiled_in_parser_judges_alike() {
    let fossil = PlainFossil::new();
    for content in candidates() {
        assert_eq!(
            looks_like_artifact(&content),
            engine_takes(&fossil, &content),
            "{}",
            content.escape_ascii()
        );
    }
    let text = String::from_utf8(with_z(&format!("C x\nD 2026-11-30T10:23:45\nP {HASH}\n"))).unwrap();
    let signed = format!(
        "-----BEGIN SSH SIGNED MESSAGE-----\n\n{text}-----BEGIN SSH SIGNATURE-----\nabc\n-----END SSH SIGNATURE-----\n"
    );
    assert!(looks_like_artifact(signed.as_bytes()) && engine_takes(&fossil, signed.as_bytes()));
}

#[test]
fn c14_one_byte_changed_is_judged_as_by_fossil() {
    let fossil = PlainFossil::new();
    let d = "D 2026-11-30T10:23:45";
    let good = format!("C x\n{d}\nF b {HASH} x\nP {HASH}\nT *branch * t\nU ann\n");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut taken = 0;
    for round in 0..600 {
        let bytes = prop::sample::select(b"\n \0CDFPTUZ*+-\\sx0/.".to_vec());
        let (at, byte) = (0..good.len(), bytes).new_tree(&mut runner).unwrap().current();
        let mut body = good.clone().into_bytes();
        body[at] = byte;
        let content = [&body[..], z_card(&body).as_bytes()].concat();
        let looks = looks_like_artifact(&content);
        assert_eq!(looks, engine_takes(&fossil, &content), "{}", content.escape_ascii());
        if round % 20 == 0 {
            assert_eq!(looks, fossil_takes(&fossil, &content), "{}", content.escape_ascii());
        }
        taken += u32::from(looks);
    }
    assert!((50..550).contains(&taken), "{taken} taken");
}

#[test]
fn b14_cards_that_would_crash_the_parser_count_as_artifacts() {
    let d = "D 2026-11-30T10:23:45";
    let wild = [
        format!("{d}\nL A\nU ann\nW 4294967295\nhello\n"),
        format!("{d}\nG {HASH}\nI {HASH}\nK\nU ann\n"),
        format!("C x\n{d}\nR {}\nU ann\nZ\n", &HASH[..32]),
    ];
    let fossil = PlainFossil::new();
    for body in wild {
        // The Fossil that is compiled in refuses what would crash it.
        if !PlainFossil::is_own() {
            assert!(fossil_takes(&fossil, &with_z(&body)), "plain Fossil survives {body}");
        }
        assert!(looks_like_artifact(&with_z(&body)), "{body}");
        assert_eq!(Manifest::parse(&with_z(&body)).unwrap_err().kind(), Kind::Corrupt);
    }
    for body in [format!("C x\n{d}\nF name\nU a\n"), format!("{d}\nU a\n")] {
        assert_eq!(Manifest::parse(&with_z(&body)).unwrap_err().kind(), Kind::Corrupt);
    }
}

fn manifest() -> Manifest {
    Manifest {
        comment: Some("x".into()),
        date: "2026-11-30T10:23:45.120".into(),
        user: Some("ann".into()),
        ..Manifest::default()
    }
}

fn file(name: &str) -> FileCard {
    FileCard {
        name: name.into(),
        hash: Some(Hash::parse(HASH).unwrap()),
        kind: FileKind::Regular,
        prior: None,
    }
}

#[test]
fn c11_a_comment_of_cards_stays_a_comment() {
    let comment = "line1\nD 2020-01-01T00:00:00\nU boss\n\\s [trunk] <script>\t\r\u{b}\u{c} é\\";
    let made = Manifest { comment: Some(comment.into()), ..manifest() };
    let read = Manifest::parse(&made.write().unwrap()).unwrap();
    assert_eq!(read, made);
    assert_eq!((read.user.as_deref(), read.date.as_str()), (Some("ann"), "2026-11-30T10:23:45.120"));
}

#[test]
fn what_is_written_is_read_back_and_taken_by_fossil() {
    let fossil = PlainFossil::new();
    let hash = Hash::parse(HASH).unwrap();
    let made = Manifest {
        baseline: Some(Hash::of(b"base")),
        files: vec![
            FileCard { hash: None, ..file("a gone file") },
            FileCard { kind: FileKind::Executable, prior: Some("old name".into()), ..file("b\\new\nline") },
            FileCard { prior: Some("before".into()), ..file("c") },
            FileCard { kind: FileKind::Symlink, ..file("dir/link") },
        ],
        mimetype: Some("text/x-markdown".into()),
        parents: vec![hash, Hash::of(b"")],
        cherrypicks: vec![Cherrypick { backout: true, target: hash, base: Some(hash) }],
        repo_checksum: Some("d41d8cd98f00b204e9800998ecf8427e".into()),
        tags: [
            TagCard::new_branch("a b\nU boss"),
            vec![
                TagCard {
                    action: TagAction::Add,
                    name: "v 1".into(),
                    target: Some(hash),
                    value: Some("a\nb".into()),
                },
                TagCard { action: TagAction::Cancel, name: "sym-trunk".into(), target: None, value: None },
            ],
        ]
        .concat(),
        ..manifest()
    };
    let written = made.write().unwrap();
    assert!(fossil_takes(&fossil, &written));
    let read = Manifest::parse(&written).unwrap();
    assert_eq!(read.write().unwrap(), written);
    assert_eq!(
        (&read.files, &read.cherrypicks, read.tags.len()),
        (&made.files, &made.cherrypicks, made.tags.len())
    );
}

#[test]
fn files_and_tags_are_sorted_by_bytes() {
    let made =
        Manifest { files: vec![file("b"), file("a"), file("a/b"), file("B"), file("a-b")], ..manifest() };
    let read = Manifest::parse(&made.write().unwrap()).unwrap();
    let names: Vec<_> = read.files.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["B", "a", "a-b", "a/b", "b"]);
}

#[test]
fn values_that_cannot_stand_in_a_manifest_are_refused() {
    let tag =
        |name: &str| vec![TagCard { action: TagAction::Add, name: name.into(), target: None, value: None }];
    let wrong = [
        Manifest { comment: Some("a\0b".into()), ..manifest() },
        Manifest { date: "now".into(), ..manifest() },
        Manifest { date: "2026-11-30T10:23:45\nU boss".into(), ..manifest() },
        Manifest { date: "2026-13-30T10:23:45".into(), ..manifest() },
        Manifest { files: vec![file("../up")], ..manifest() },
        Manifest { files: vec![file("a"), file("a")], ..manifest() },
        Manifest { files: vec![file(".fslckout")], ..manifest() },
        Manifest { files: vec![FileCard { hash: None, ..file("a") }], ..manifest() },
        Manifest { repo_checksum: Some("123".into()), ..manifest() },
        Manifest { tags: tag("deadbeef"), ..manifest() },
        Manifest { tags: tag(""), ..manifest() },
        Manifest { tags: [tag("x"), tag("x")].concat(), ..manifest() },
        Manifest { comment: None, ..manifest() },
    ];
    for made in wrong {
        assert_eq!(made.write().unwrap_err().kind(), Kind::Invalid, "{made:?}");
    }
}

#[test]
fn other_artifacts_and_plain_text_are_no_manifests() {
    let kind = |bytes: &[u8]| Manifest::parse(bytes).unwrap_err().kind();
    assert_eq!(kind(&with_z(&format!("M {HASH}\n"))), Kind::Invalid);
    assert_eq!(kind(b"hello\n"), Kind::Corrupt);
    let latin = [&b"C x\nD 2026-11-30T10:23:45\nF caf\xe9 "[..], HASH.as_bytes(), b"\n"].concat();
    let latin = [&latin[..], z_card(&latin).as_bytes()].concat();
    assert_eq!(kind(&latin), Kind::Unsupported);
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = looks_like_artifact(&bytes);
        let _ = Manifest::parse(&[&bytes[..], b"\n"].concat());
    }

    #[test]
    fn card_like_lines_never_panic(body in "([A-Z] [a-z0-9*+ \\\\\0-]{0,45}\n){0,8}") {
        let _ = looks_like_artifact(&with_z(&body));
        let _ = looks_like_artifact(body.as_bytes());
    }

    #[test]
    fn any_text_survives_writing_and_reading(comment in "[^\0]{0,60}", name in "[a-z][^\0/]{0,20}", value in "[^\0]{0,20}") {
        let tags = vec![TagCard { action: TagAction::Add, name: "note-x".into(), target: None, value: Some(value) }];
        let made = Manifest { comment: Some(comment), files: vec![file(&name)], tags, ..manifest() };
        prop_assert_eq!(Manifest::parse(&made.write().unwrap()).unwrap(), made);
    }
}
