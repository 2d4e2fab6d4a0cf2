//! The plan of a build: the folders, compilers and settings that Cargo and the environment give it. All later stages
//! read the plan, never the environment.

use super::disk::read;
use super::failure::{Failure, Result, run};
use super::verify::Pin;
use std::env;
use std::path::PathBuf;
use std::process::Command;

const STAGE: &str = "plan";

/// The settings of one build.
pub struct Plan {
    /// This package's own folder.
    pub root: PathBuf,
    /// Cargo's folder for what the build writes. The build writes nothing elsewhere.
    pub out: PathBuf,
    /// The release and check-in of Fossil to build.
    pub pin: Pin,
    /// `$OCX_FOSSIL_SRC`: a folder or an archive of Fossil's sources.
    pub given_source: Option<PathBuf>,
    /// How many compilers to run at a time.
    pub jobs: usize,
    /// `$OCX_SANITIZE`: what `-fsanitize=` is to be, for builds that test the C code.
    pub sanitize: Option<String>,
    /// The folder of the `sqlite3.h` that belongs to the SQLite linked in.
    pub sqlite_include: PathBuf,
    /// The folder of `zlib.h`, where the zlib linked in is not the system's.
    pub zlib_include: Option<PathBuf>,
    /// The compiler for the machine that OCX will run on.
    pub cc: Compiler,
    /// The compiler for the machine that builds.
    pub host_cc: Compiler,
}

impl Plan {
    /// Reads the plan from Cargo's variables and our own.
    pub fn from_env() -> Result<Self> {
        for name in ["OCX_FOSSIL_SRC", "OCX_SANITIZE", "OCX_WRITE_BINDINGS"] {
            println!("cargo:rerun-if-env-changed={name}");
        }
        for path in ["build.rs", "src/engine/build", "src/engine/c", "src/engine/bindings.rs", "vendor"] {
            println!("cargo:rerun-if-changed={path}");
        }
        let root = PathBuf::from(cargo_var("CARGO_MANIFEST_DIR")?);
        let pin = read(STAGE, &root.join("vendor/PIN"))?;
        let pin = Pin::parse(&pin)
            .map_err(|e| Failure::new(STAGE, e, "Restore vendor/PIN from the repository."))?;
        Ok(Self {
            out: PathBuf::from(cargo_var("OUT_DIR")?),
            pin,
            given_source: var("OCX_FOSSIL_SRC").map(PathBuf::from),
            jobs: var("NUM_JOBS").and_then(|n| n.parse().ok()).unwrap_or(1),
            sanitize: var("OCX_SANITIZE"),
            sqlite_include: PathBuf::from(cargo_var("DEP_SQLITE3_INCLUDE")?),
            zlib_include: var("DEP_Z_INCLUDE").map(PathBuf::from),
            cc: Compiler::find(&cargo_var("TARGET")?)?,
            host_cc: Compiler::find(&cargo_var("HOST")?)?,
            root,
        })
    }
}

/// A C compiler with the flags that the target and the user's `CFLAGS` ask for.
pub struct Compiler {
    tool: cc::Tool,
    /// The first line of `--version`: another compiler makes every object stale.
    pub version: String,
}

impl Compiler {
    fn find(target: &str) -> Result<Self> {
        const ADVICE: &str = "Install a C compiler and binutils (on Debian: `apt-get install gcc libc6-dev \
             binutils`), or name a working compiler in the variable CC.";
        let mut build = cc::Build::new();
        build
            .target(target)
            .opt_level(2)
            .debug(false)
            .warnings(true)
            .extra_warnings(false)
            .pic(true)
            .cargo_warnings(false);
        let tool = build
            .try_get_compiler()
            .map_err(|e| Failure::new(STAGE, format!("no C compiler for {target}: {e}"), ADVICE))?;
        let mut probe = Command::new(tool.path());
        let version = run(STAGE, &format!("no C compiler for {target}"), probe.arg("--version"), ADVICE)?;
        let version = String::from_utf8_lossy(&version.stdout);
        Ok(Self { tool, version: version.lines().next().unwrap_or_default().to_owned() })
    }

    /// A command that starts this compiler with its flags.
    pub fn command(&self) -> Command {
        let mut command = self.tool.to_command();
        command.env("LC_ALL", "C");
        command
    }

    /// The program of binutils called `name` that belongs to this compiler.
    pub fn binutil(&self, name: &str) -> Result<PathBuf> {
        let variable = name.to_uppercase();
        println!("cargo:rerun-if-env-changed={variable}");
        let advice = format!(
            "Install binutils (on Debian: `apt-get install binutils`), or name it in the variable {variable}."
        );
        let mut ask = Command::new(self.tool.path());
        let path = if let Some(path) = var(&variable) {
            path
        } else {
            let told = run(STAGE, name, ask.arg(format!("-print-prog-name={name}")), &advice)?;
            String::from_utf8_lossy(&told.stdout).trim().to_owned()
        };
        run(STAGE, &format!("no `{name}`"), Command::new(&path).arg("--version"), &advice)?;
        Ok(path.into())
    }
}

fn var(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn cargo_var(name: &str) -> Result<String> {
    var(name)
        .ok_or_else(|| Failure::new(STAGE, format!("no variable {name}"), "Start the build through Cargo."))
}
