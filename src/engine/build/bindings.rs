//! Keeps `src/engine/bindings.rs` true to `src/engine/c/ocx.h`.
//!
//! The bindings are committed, so an ordinary build needs no libclang. The feature `bindgen` makes them again
//! and fails if they differ; with `OCX_WRITE_BINDINGS=1` it writes them instead.

use super::failure::Result;
use super::plan::Plan;

/// Does nothing: an ordinary build uses the committed bindings.
#[cfg(not(feature = "bindgen"))]
#[expect(clippy::unnecessary_wraps, reason = "the variant with the feature can fail")]
pub fn check(_plan: &Plan) -> Result<()> {
    Ok(())
}

/// Compares the committed bindings with those that the header gives now.
#[cfg(feature = "bindgen")]
pub fn check(plan: &Plan) -> Result<()> {
    use super::disk::{read, write_if_changed};
    use super::failure::Failure;

    let committed = plan.root.join("src/engine/bindings.rs");
    let made = make(plan)?;
    if std::env::var_os("OCX_WRITE_BINDINGS").is_some_and(|value| value == "1") {
        return write_if_changed("bindings", &committed, made.as_bytes());
    }
    write_if_changed("bindings", &plan.out.join("bindings.rs"), made.as_bytes())?;
    if read("bindings", &committed)? == made {
        return Ok(());
    }
    let what = "src/engine/bindings.rs does not fit src/engine/c/ocx.h";
    let advice = "Run `OCX_WRITE_BINDINGS=1 cargo check --features bindgen` and commit the file.";
    Err(Failure::new("bindings", what, advice))
}

#[cfg(feature = "bindgen")]
fn make(plan: &Plan) -> Result<String> {
    let bindings = bindgen::Builder::default()
        .header(plan.root.join("src/engine/c/ocx.h").display().to_string())
        .clang_arg(format!("-I{}", plan.sqlite_include.display()))
        .allowlist_item("(ocx_|Ocx|OCX_).*")
        .raw_line("//! Made by bindgen from `src/engine/c/ocx.h`; see `src/engine/build/bindings.rs`.")
        .raw_line("#![allow(unsafe_code, missing_docs, dead_code, reason = \"declarations made from C\")]")
        .raw_line(
            "#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, reason = \"C names\")]",
        )
        .raw_line(
            "#![allow(clippy::all, clippy::pedantic, clippy::restriction, reason = \"not written by hand\")]",
        )
        .derive_default(true)
        .layout_tests(false)
        .disable_header_comment()
        .rust_edition(bindgen::RustEdition::Edition2024)
        .use_core()
        // As `cargo fmt` would: otherwise the two would undo each other.
        .formatter(bindgen::Formatter::Rustfmt)
        .rustfmt_configuration_file(Some(plan.root.join(".rustfmt.toml")))
        .generate()
        .map_err(|e| {
            let advice =
                "Mend the header; bindgen needs libclang (on Debian: `apt-get install libclang-dev`).";
            super::failure::Failure::new("bindings", format!("src/engine/c/ocx.h: {e}"), advice)
        })?;
    Ok(bindings.to_string())
}
