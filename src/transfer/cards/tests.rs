use super::*;
use crate::format::artifact::{Reading, checksum, read};

const HASH: &str = "0123456789abcdef0123456789abcdef01234567";
const UPPER: &str = "0123456789ABCDEF0123456789abcdef01234567";
const DATE: &str = "2026-11-30T10:23:45";
const MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// A right card of each letter, of a kind; where there are several, in order.
fn card(kind: ArtifactKind, letter: u8) -> String {
    match (kind, letter) {
        (_, b'A') => format!("A a.txt Page {HASH}"),
        (_, b'B') => format!("B {HASH}"),
        (_, b'C') => "C text".into(),
        (_, b'D') => format!("D {DATE}"),
        (_, b'E') => format!("E {DATE} {HASH}"),
        (_, b'F') => format!("F a.txt {HASH}"),
        (_, b'G') => format!("G {HASH}"),
        (_, b'H') => "H title".into(),
        (_, b'I') => format!("I {HASH}"),
        (_, b'J') => "J status open".into(),
        (_, b'K') => format!("K {HASH}"),
        (_, b'L') => "L Page".into(),
        (_, b'M') => format!("M {HASH}"),
        (_, b'N') => "N text/plain".into(),
        (_, b'P') => format!("P {HASH}"),
        (_, b'Q') => format!("Q +{HASH}"),
        (_, b'R') => format!("R {MD5}"),
        (Control, b'T') => format!("T +note {HASH} x"),
        (_, b'T') => "T +note * x".into(),
        (_, b'U') => "U ann".into(),
        (_, b'W') => "W 2\nhi".into(),
        _ => String::new(),
    }
}

/// A well-formed artifact of a kind that has the needed cards and this one, changed.
fn artifact(kind: ArtifactKind, letter: u8, changed: &str) -> Vec<u8> {
    let (allowed, required) = kind.cards();
    let mut text = String::new();
    for other in allowed.bytes().filter(|other| *other != b'Z') {
        if other == letter {
            text += changed;
        } else if required.as_bytes().contains(&other) || is_telling(kind, other, letter) {
            text += &card(kind, other);
        } else {
            continue;
        }
        text.push('\n');
    }
    let sum = checksum(text.as_bytes());
    format!("{text}Z {sum}\n").into_bytes()
}

/// Whether a card that need not be there tells the kind.
fn is_telling(kind: ArtifactKind, other: u8, letter: u8) -> bool {
    match kind {
        CheckIn => other == b'C',
        Forum => other == b'H' && letter != b'I',
        _ => false,
    }
}

fn fault_of(kind: ArtifactKind, text: &[u8]) -> Option<String> {
    let shown = String::from_utf8_lossy(text);
    let Reading::Artifact(cards) = read(text) else {
        panic!("no artifact: {}", &shown[..shown.len().min(400)])
    };
    assert_eq!(cards.kind(), kind, "{}", &shown[..shown.len().min(400)]);
    fault(&cards)
}

/// Cards that say what is not taken from anyone.
fn wrong(kind: ArtifactKind, letter: u8, asked: Asked) -> Vec<String> {
    let right = card(kind, letter);
    let name = char::from(letter);
    let many = |n: usize| (0..n).map(move |n| format!("{n:040x}"));
    let mut wrong = Vec::new();
    if right.contains(HASH) {
        wrong.push(right.replace(HASH, UPPER));
        wrong.push(right.replace(HASH, &format!("{UPPER}{}", &HASH[..24])));
        wrong.retain(|card| letter != b'K' || !card.contains(&format!("{UPPER}{}", &HASH[..24])));
    }
    match asked {
        Asked::Nothing => {}
        Asked::Date => wrong.extend(["now", "-4713-12-31"].map(|date| right.replace(DATE, date))),
        Asked::Text(max) if max == ALL => {}
        Asked::Text(_) if letter == b'L' => {}
        Asked::Text(max) => wrong.push(format!("{name} {}", "x".repeat(max + 1))),
        Asked::Count(max) => {
            wrong.push(many(max + 1).map(|n| format!("{name} {n}")).collect::<Vec<_>>().join("\n"));
        }
        Asked::Hashes(max) if max <= 2 || max == ALL => {}
        Asked::Hashes(max) if letter == b'P' => {
            wrong.push(many(max + 1).fold("P".into(), |text, hash| text + " " + &hash));
        }
        Asked::Hashes(max) => {
            let sign = if letter == b'Q' { "+" } else { "" };
            wrong.push(many(max + 1).map(|n| format!("{name} {sign}{n}")).collect::<Vec<_>>().join("\n"));
        }
        Asked::Tags(max) => {
            let target = if kind == Control { HASH } else { "*" };
            let tags = |sigil: char, n: usize| {
                (0..n).map(|n| format!("T {sigil}x{n:05} {target}")).collect::<Vec<_>>().join("\n")
            };
            wrong.push(tags('+', max + 1));
            if kind != Event {
                wrong.push(tags('*', PROPAGATING_MAX + 1));
            }
            wrong.extend(
                ["private", "date", "parent", "wiki-Page", "cluster"]
                    .map(|name| format!("T +{name} {target}")),
            );
        }
    }
    wrong
}

#[test]
fn the_table_has_each_card_of_each_kind_once() {
    let mut expected = Vec::new();
    for kind in ArtifactKind::ALL {
        expected.extend(kind.cards().0.bytes().map(|card| (kind, card)));
    }
    let rows: Vec<_> = ROWS.iter().map(|(kind, card, ..)| (*kind, *card)).collect();
    assert_eq!(rows, expected);
}

#[test]
fn each_card_of_each_kind_is_taken_when_it_is_right_and_a_fault_when_it_is_not() {
    let mut tried = 0;
    for (kind, letter, asked, _) in ROWS {
        if letter == b'Z' {
            continue;
        }
        let right = artifact(kind, letter, &card(kind, letter));
        assert_eq!(fault_of(kind, &right), None, "{}", String::from_utf8_lossy(&right));
        for card in wrong(kind, letter, asked) {
            let text = artifact(kind, letter, &card);
            assert!(fault_of(kind, &text).is_some(), "{kind:?} {}", &card[..card.len().min(200)]);
            tried += 1;
        }
    }
    assert!(tried > 80, "{tried}");
}

#[test]
fn a_nul_in_a_card_is_a_fault_and_one_in_a_page_is_none() {
    assert!(fault_of(Wiki, &artifact(Wiki, b'P', &format!("P {HASH}\0{HASH}"))).is_some());
    assert_eq!(fault_of(Wiki, &artifact(Wiki, b'W', "W 3\na\0b")), None);
}

#[test]
fn old_and_odd_dates_are_no_fault() {
    for date in
        ["2007-07-21T14:10:57", "0001-01-01", "9999-12-31T23:59:59.999", "2454303.1", "2026-11-30 10:23"]
    {
        let date = date.replace(' ', "T");
        assert_eq!(fault_of(CheckIn, &artifact(CheckIn, b'D', &format!("D {date}"))), None, "{date}");
    }
}

#[test]
fn bytes_that_are_no_text_are_no_fault() {
    let text =
        [&b"C caf\xe9\nD 2026-11-30T10:23:45\nF \xe9 "[..], HASH.as_bytes(), b"\nT +sym-\xe9 *\nU \xe9\n"]
            .concat();
    let text = [&text[..], format!("Z {}\n", checksum(&text)).as_bytes()].concat();
    assert_eq!(fault_of(CheckIn, &text), None);
}
