use super::*;

const NAMES: [&str; 22] = [
    "audited",
    "bgcolor",
    "branch",
    "closed",
    "cluster",
    "comment",
    "date",
    "event-0a1b",
    "hidden",
    "note",
    "parent",
    "private",
    "sym-agent/ann-0a1b2c3d",
    "sym-audited",
    "sym-passed",
    "sym-private",
    "sym-trunk",
    "sym-v1.0",
    "tkt-0a1b",
    "user",
    "wiki-Home",
    "anything",
];
const ACTIONS: [TagAction; 3] = [TagAction::Add, TagAction::Cancel, TagAction::Propagate];
const BRANCH: &str = "agent/ann-0a1b2c3d";
const HASH: &str = "0123456789012345678901234567890123456789";

fn values() -> Vec<Option<String>> {
    let some =
        ["", "x", "trunk", BRANCH, "2026-11-30T10:23:45", "now", HASH].map(|value| Some(value.to_owned()));
    let lists =
        [format!("{HASH} x"), format!("{HASH} {HASH}"), format!("{HASH}  {HASH}"), format!("{HASH} ")];
    [vec![None], some.to_vec(), lists.map(Some).to_vec()].concat()
}

/// Calls `see` with every tag, action, value and target.
fn each_card(mut see: impl FnMut(&TagCard)) {
    for name in NAMES {
        for action in ACTIONS {
            for value in values() {
                for target in [None, Some(Hash::of(b"x"))] {
                    see(&TagCard { action, name: name.to_owned(), target, value: value.clone() });
                }
            }
        }
    }
}

#[test]
fn v02_v03_an_agents_check_in_carries_its_own_branchs_tags_and_the_cancels_of_its_parents_symbols() {
    let (branch, symbols) = (Branch::parse(BRANCH).unwrap(), ["sym-trunk", "sym-passed"].map(str::to_owned));
    let mut taken = Vec::new();
    each_card(|tag| match check_agents(&Hash::of(b"y"), tag, &branch, &symbols) {
        Ok(()) => taken.push(shown(tag)),
        Err(e) => {
            assert_eq!(e.kind(), Kind::Denied, "{e}");
            let parts =
                [&shown(tag), Hash::of(b"y").as_str(), "allowed are", "`T -sym-passed *`"].map(str::to_owned);
            assert!(parts.iter().all(|part| e.to_string().contains(part)), "{e}");
        }
    });
    taken.dedup();
    let allowed = [
        "T *branch * agent/ann-0a1b2c3d",
        "T *sym-agent/ann-0a1b2c3d *",
        "T -sym-passed *",
        "T -sym-trunk *",
    ];
    assert_eq!(taken, allowed);
}

#[test]
fn v02_a_symbol_that_is_not_the_parents_is_not_cancelled_nor_is_the_branchs_own() {
    let branch = Branch::parse(BRANCH).unwrap();
    let cancel = |name: &str| {
        let tag = TagCard { action: TagAction::Cancel, name: name.into(), target: None, value: None };
        check_agents(&Hash::of(b"y"), &tag, &branch, &["sym-agent/ann-0a1b2c3d".to_owned()])
    };
    assert!(cancel("sym-trunk").is_err() && cancel("sym-agent/ann-0a1b2c3d").is_err());
}

#[test]
fn v01_from_anyone_only_values_that_fossils_code_can_trust_are_taken() {
    let (list, date) = (format!("{HASH} {HASH}"), "2026-11-30T10:23:45");
    each_card(|tag| {
        let value = tag.value.as_deref().unwrap_or_default();
        // The lists begin with a digit, but they are no date.
        let fits = match (&tag.name[..], tag.action) {
            ("parent" | "cluster", TagAction::Cancel) => true,
            ("parent", _) => value == HASH || value == list,
            ("date", TagAction::Cancel)
            | ("private" | "cluster" | "event-0a1b" | "tkt-0a1b" | "wiki-Home", _) => false,
            ("date", _) => value == date,
            _ => true,
        };
        let fault = fault(tag);
        assert_eq!(fault.is_none(), fits, "{tag:?}");
        assert!(fault.is_none_or(|why| why.contains(&shown(tag))), "{tag:?}");
    });
}

#[test]
fn v02_a_long_value_does_not_propagate() {
    let tag = |action, size| {
        fault(&TagCard { action, name: "note".into(), target: None, value: Some("x".repeat(size)) })
    };
    assert!(tag(TagAction::Propagate, PROPAGATED_MAX).is_none());
    assert!(tag(TagAction::Propagate, PROPAGATED_MAX + 1).is_some());
    assert!(tag(TagAction::Add, PROPAGATED_MAX + 1).is_none());
}
