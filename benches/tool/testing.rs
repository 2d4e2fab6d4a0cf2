//! `ocx_test` of a test that does nothing: what the test tree and the sandbox cost beside the same command in the folder.

use std::cell::{Cell, RefCell};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Place;
use super::common::mcp::Client;
use super::common::{Options, Result, Way, interleaved, table};

/// The file that is changed. The benchmark makes it first.
const FILE: &str = "ocx-bench.txt";

pub fn runs(place: &Place, options: &Options) -> Result<()> {
    fs::write(place.tree.join("ocx-tests.json"), r#"{"tests":[{"name":"unit","command":"true"}]}"#)?;
    fs::write(place.tree.join(FILE), "0\n")?;
    let client = RefCell::new(Client::start(&place.tree, &place.home)?);
    let test = || client.borrow_mut().time("ocx_test", &json!({}));
    let first = test()?;
    let count = Cell::new(0);
    let ways = vec![
        Way::new("ocx_test, nothing changed", |_| test()),
        Way::new("ocx_test, one file changed", |_| {
            // A run within the second of the last one waits for the next second, so that no build tool is fooled.
            sleep(Duration::from_millis(1_100));
            count.set(count.get() + 1);
            fs::write(place.tree.join(FILE), format!("{}\n", count.get()))?;
            test()
        }),
        Way::new("spawned `bash -c true` in the folder", |_| {
            let start = Instant::now();
            let ended = Command::new("bash").args(["-c", "true"]).current_dir(&place.tree).status()?;
            if ended.success() { Ok(start.elapsed()) } else { Err(ended.to_string().into()) }
        }),
    ];
    let times = interleaved(ways, options.rounds(12))?;
    table(&format!("A test that does nothing, {} files", place.files), &times);
    println!("\nThe first run, on an empty tree: {} ms.", first.as_millis());
    Ok(())
}
