//! How long a ping waits while a tool works for the same client or for another client.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ocx::name::{UnversionedName, User};
use ocx::record::Unversioned;
use ocx::repo::Repository;
use serde_json::{Value, json};

use super::Place;
use super::common::mcp::Listening;
use super::common::programs::USER;
use super::common::{Options, Result, Way, interleaved, shown, table, timed};

/// The number of bytes of a file whose answer has 20 MB as base64.
const HUGE: u32 = 15 << 20;

pub fn pings(place: &Place, options: &Options) -> Result<()> {
    let repository = Repository::open(&place.home.join("r.fossil"))?;
    let noise: Vec<u8> = (0..HUGE / 4).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    assert!(STANDARD.encode(&noise).len() > 20_000_000);
    Unversioned::of(&repository).put(&UnversionedName::parse("huge.bin")?, &noise, &User::parse(USER)?)?;
    let idle = ("nothing else", None);
    let search = ("a search of the tree", Some(("ocx_find", json!({"text": "no such words at all"}))));
    let huge =
        ("an answer of 20 MB", Some(("ocx_unversioned_get", json!({"name": "huge.bin", "bytes": 16 << 20}))));
    for (what, work) in [idle, search, huge] {
        beside(place, options, what, work.as_ref())?;
    }
    Ok(())
}

/// Measures pings over HTTP while another connection repeats the same call without a pause.
fn beside(place: &Place, options: &Options, what: &str, work: Option<&(&str, Value)>) -> Result<()> {
    let server = Listening::start(&place.tree, &place.home)?;
    let kept = RefCell::new(server.connect()?);
    let mut busy = server.connect()?;
    let ended = AtomicBool::new(false);
    let series = std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Some((tool, arguments)) = work
                && !ended.load(Ordering::Relaxed)
                && busy.call(tool, arguments).is_ok()
            {}
        });
        let ways = vec![Way::new("ping over HTTP", |_| timed(|| kept.borrow_mut().ping()))];
        let series = interleaved(ways, options.rounds(400));
        ended.store(true, Ordering::Relaxed);
        series
    })?;
    table(&format!("Beside {what}"), &series);
    println!("The longest: {}.", shown(series[0].percentile(100)));
    Ok(())
}
