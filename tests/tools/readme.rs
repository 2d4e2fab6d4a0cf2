//! The command lines of the README, run as they stand.

use std::ffi::OsString;
use std::path::Path;

use ocx::face::cli::{Next, Terminal, run};

use crate::support::{Fixture, Fossil, OCX, Server};

const README: &str = include_str!("../../README.md");

/// The lines of the README's shell blocks from which `ocx` is called, without remarks.
fn blocks() -> Vec<Vec<String>> {
    let blocks = README.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = |block: &str| block.lines().map(|line| without_remark(line).to_owned()).collect::<Vec<_>>();
    blocks.map(lines).filter(|lines| lines.iter().any(|line| line.contains("ocx "))).collect()
}

fn without_remark(line: &str) -> &str {
    line.split("  #").next().unwrap_or_default().trim_end()
}

fn is_served(line: &str) -> bool {
    line.split(' ').any(|word| word == "mcp")
}

/// A repository of a server, with all that the README's lines speak of, and the folder where they are run.
fn served() -> (Fixture, Server) {
    let lines = "a line\n".repeat(300);
    let main = format!("{lines}x = 1\nsome exact text\n");
    let f = Fixture::tested("true", &[("src/main.c", main.as_bytes())]);
    f.write("../plan", "the plan\n");
    f.fossil(&["wiki", "create", "Plan", "../plan"]);
    f.write("side.txt", "side\n");
    f.fossil(&["add", "side.txt"]);
    f.fossil(&["commit", "-m", "side", "--branch", "side", "--no-warnings", "--user-override", "alice"]);
    for (login, capabilities) in [("scout", "goijy"), ("ann", "goij")] {
        f.fossil(&["user", "new", login, login, "s3cret"]);
        f.fossil(&["user", "capabilities", login, capabilities]);
    }
    let server = Server::start(Fossil::Reference, f.folder(), &f.repository());
    std::fs::create_dir(f.folder().join("here")).expect("a folder");
    (f, server)
}

fn script(f: &Fixture, folder: &Path, lines: &str) {
    let mut shell = f.shell(folder);
    let _ = std::os::unix::fs::symlink(OCX, f.folder().join("bin/ocx"));
    let out = shell.args(["-ec", lines]).env("OCX_PASSWORD", "s3cret").output().expect("a shell");
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{lines}\n{said}");
}

#[test]
fn every_command_line_of_the_readme_runs() {
    let (f, server) = served();
    let here = f.folder().join("here");
    let url = |line: &str| {
        let login = format!("http://scout@127.0.0.1:{}/", server.port);
        line.replace("OCX_PASSWORD=...", "OCX_PASSWORD=s3cret")
            .replace("http://scout@example.org/project", &login)
    };
    script(
        &f,
        &here,
        &format!(
            "ocx clone http://scout@127.0.0.1:{}/ clone.fossil; ocx fossil user new ann ann x -R clone.fossil
             ocx fossil user capabilities ann goij -R clone.fossil",
            server.port
        ),
    );
    let mut count = 0;
    for block in blocks() {
        let lines: Vec<String> = block.iter().filter(|line| !is_served(line)).map(|line| url(line)).collect();
        let own =
            |line: &&String| line.starts_with("ocx ") || line.contains(" ocx ") || line.starts_with("cd ");
        let lines: Vec<String> =
            lines.iter().filter(|line| !line.starts_with("cargo")).filter(own).cloned().collect();
        count += lines.iter().filter(|line| line.contains("ocx ")).count();
        script(&f, &here, &lines.join("\n"));
    }
    assert!(count >= 15, "{count} lines");
}

#[test]
fn every_server_of_the_readme_is_a_command_line() {
    let here = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    for line in blocks().concat() {
        let words = line.split("-- /path/to/ocx ").last().and_then(|line| {
            let words = line.strip_prefix("ocx ").unwrap_or(line);
            is_served(words).then_some(words)
        });
        let Some(words) = words.filter(|words| words.starts_with('-')) else { continue };
        let mut input = std::io::empty();
        let mut out = std::io::sink();
        let mut err = std::io::sink();
        let mut terminal = Terminal::on(&mut input, &mut out, &mut err);
        // The folder of the reader's own, which must be there.
        let words = words.replace("/path/to/work", here.path().to_str().expect("text"));
        let next = run(words.split_whitespace().map(OsString::from).collect(), &mut terminal);
        assert!(matches!(next, Next::Serve(_)), "{line}");
        count += 1;
    }
    assert!(count >= 3, "{count} lines");
}
