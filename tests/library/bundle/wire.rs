//! The form for the wire.

use std::fs;

use ocx::bundle::Bundle;
use ocx::error::Kind;

use crate::support::clones::{Clones, derived, text};

#[test]
fn the_wire_form_carries_the_same_and_is_smaller() {
    let place = Clones::with_history();
    let bundle = place.bundle("b");
    let size = bundle.save_wire(&place.path("w")).unwrap();
    assert_eq!(size, fs::metadata(place.path("w")).unwrap().len());
    assert!(size * 2 < bundle.size(), "{size} of {}", bundle.size());
    let mut bytes = Vec::new();
    bundle.write_wire(&mut bytes).unwrap();
    let (opened, given) = (Bundle::open(&place.path("w")).unwrap(), Bundle::from_bytes(&bytes).unwrap());
    let shown = |bundle: &Bundle| format!("{:?}", bundle.contents().unwrap().check_ins);
    assert_eq!(shown(&opened), shown(&bundle));
    assert_eq!((opened.len(), opened.project_code()), (bundle.len(), bundle.project_code()));
    assert_eq!(place.import(&given).unwrap().artifacts, bundle.len());
    assert_eq!(derived(place.here.path()), derived(place.there.path()));
}

#[test]
fn deltas_from_outside_stay_deltas_on_the_wire() {
    let place = Clones::new();
    place.edit("a.txt", &text(1));
    place.save("base", None);
    place.import(&place.bundle("start")).unwrap();
    place.edit("a.txt", &text(2));
    place.save("next", None);
    // As plain Fossil makes them: from what it takes the receiver to hold.
    place.fossil(&["bundle", "export", "b", "--checkin", "trunk", "-R", "here.fossil"]);
    let bundle = Bundle::open(&place.path("b")).unwrap();
    assert!(!bundle.is_standalone());
    bundle.save_wire(&place.path("w")).unwrap();
    let opened = Bundle::open(&place.path("w")).unwrap();
    assert_eq!(opened.bases(), bundle.bases());
    assert_eq!(opened.contents().unwrap_err().kind(), Kind::NotFound);
    place.import(&opened).unwrap();
    assert_eq!(derived(place.here.path()), derived(place.there.path()));
}

#[test]
fn a_damaged_or_cut_wire_form_is_refused() {
    let place = Clones::with_history();
    let mut bytes = Vec::new();
    place.bundle("b").write_wire(&mut bytes).unwrap();
    for cut in [8, 9, 20, bytes.len() / 2, bytes.len() - 1] {
        let refused = Bundle::from_bytes(&bytes[..cut]);
        assert_eq!(refused.unwrap_err().kind(), Kind::Corrupt, "cut to {cut}");
    }
    let before = derived(place.there.path());
    for at in (8..bytes.len()).step_by(37) {
        let mut broken = bytes.clone();
        broken[at] ^= 0x41;
        let done = Bundle::from_bytes(&broken).and_then(|bundle| place.import(&bundle));
        assert!(done.is_err(), "byte {at}");
    }
    assert_eq!(derived(place.there.path()), before);
}
