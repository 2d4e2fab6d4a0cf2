//! Builds Fossil's C sources into a static library. This page is the table of contents; each step
//! is a module in `src/engine/build/`.

#[path = "src/engine/build/bindings.rs"]
mod bindings;
#[path = "src/engine/build/compile.rs"]
mod compile;
#[path = "src/engine/build/disk.rs"]
mod disk;
#[path = "src/engine/build/failure.rs"]
mod failure;
#[path = "src/engine/build/fetch.rs"]
mod fetch;
#[path = "src/engine/build/flags.rs"]
mod flags;
#[path = "src/engine/build/generate.rs"]
mod generate;
#[path = "src/engine/build/isolate.rs"]
mod isolate;
#[path = "src/engine/build/link.rs"]
mod link;
#[path = "src/engine/build/makefile.rs"]
mod makefile;
#[path = "src/engine/build/object.rs"]
mod object;
#[path = "src/engine/build/obtain.rs"]
mod obtain;
#[path = "src/engine/build/plan.rs"]
mod plan;
#[path = "src/engine/build/source.rs"]
mod source;
#[path = "src/engine/build/tools.rs"]
mod tools;
#[path = "src/engine/build/unpack.rs"]
mod unpack;
#[path = "src/engine/build/verify.rs"]
mod verify;

fn main() {
    if let Err(failure) = build() {
        eprintln!("\n{failure}\n");
        std::process::exit(1);
    }
}

fn build() -> failure::Result<()> {
    let plan = plan::Plan::from_env()?;
    let source = obtain::obtain(&plan)?;
    let tools = tools::Tools::compile(&plan, &source)?;
    let generated = generate::Generated::make(&plan, &source, &tools)?;
    let objects = compile::compile(&plan, &generated)?;
    link::link(&plan, &objects)?;
    println!("cargo:rustc-env=OCX_FOSSIL_TREE={}", source.folder.display());
    bindings::check(&plan)
}
