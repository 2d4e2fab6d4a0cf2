//! Packs the objects into one static library and tells Cargo how to link it.

use super::failure::{Failure, Result, run};
use super::plan::Plan;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Makes `libocx_fossil.a`. SQLite and zlib come from the crates that bundle them.
pub fn link(plan: &Plan, objects: &[PathBuf]) -> Result<()> {
    let library = plan.out.join("libocx_fossil.a");
    let stale = "Delete the file, or set CARGO_TARGET_DIR to a folder that can be written.";
    if library.exists() {
        // `ar` adds to an archive: objects of files that are gone would stay in it.
        fs::remove_file(&library)
            .map_err(|e| Failure::new("link", format!("cannot remove {}: {e}", library.display()), stale))?;
    }
    let mut command = Command::new(plan.cc.binutil("ar")?);
    command.arg("crsD").arg(&library).args(objects);
    run("link", "libocx_fossil.a", &mut command, "Look at the message above.")?;
    println!("cargo:rustc-link-search=native={}", plan.out.display());
    println!("cargo:rustc-link-lib=static=ocx_fossil");
    for kind in plan.sanitize.iter().flat_map(|kinds| kinds.split(',')) {
        println!("cargo:rustc-link-lib={}", sanitizer(kind)?);
    }
    println!("cargo:rustc-link-lib=m");
    Ok(())
}

/// Returns GCC's runtime of a sanitizer. It is linked by name, because rustc links without the compiler's own
/// libraries. It is linked before all other libraries, because its allocator must come first.
fn sanitizer(kind: &str) -> Result<&'static str> {
    match kind {
        "address" => Ok("asan"),
        "undefined" => Ok("ubsan"),
        _ => {
            let what = format!("OCX_SANITIZE: no sanitizer `{kind}`");
            Err(Failure::new("link", what, "Use `address`, `undefined`, or both with a comma between."))
        }
    }
}
