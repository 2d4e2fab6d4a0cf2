//! A folder that sandboxed commands work in, and who the tests run as.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Child,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::HANG;
use ocx::process::{Command, Exit, Leftover, Mount, MountKind, Sandbox, Supervisor};

pub const LIMIT: Duration = Duration::from_mins(2);
/// The program of the tests for an ordinary user, who may not reach the one that was built.
pub const PROGRAM: &str = "OCX_TEST_PROGRAM";
/// The folder of a test that starts itself again, to be killed.
const CALLER: &str = "OCX_TEST_SANDBOX_CALLER";
const NOBODY: u32 = 65534;

pub fn supervisor() -> Supervisor {
    Supervisor::at(env::var_os(PROGRAM).unwrap_or_else(|| env!("CARGO_BIN_EXE_ocx").into()))
}

/// Runs `test`, which is called `name`, as this user, and as an ordinary one if this is root. Where no sandbox can be
/// had, it says so, and a command that needs one must not run.
pub fn everyone(name: &str, test: fn()) {
    if let Err(why) = supervisor().sandboxes() {
        eprintln!("{name}: no sandbox here: {why}");
        assert!(!why.why.is_empty() && !why.why.contains('\n'), "{why}");
        let bench = Bench::new();
        let ended = bench.run("touch ran");
        assert!(matches!(ended.exit, Exit::NoSandbox { .. }), "{ended:?}");
        assert_eq!(bench.run_open("touch open").exit, Exit::Status(0));
        assert_eq!(bench.names(), ["open"]);
        return;
    }
    test();
    if rustix::process::getuid().is_root() {
        as_nobody(name);
    }
}

fn as_nobody(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copied = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        to
    };
    let program = copied(Path::new(env!("CARGO_BIN_EXE_ocx")), "ocx");
    let tests = copied(&env::current_exe().unwrap(), "tests");
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let id = NOBODY.to_string();
    let ran = std::process::Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
        .arg(tests)
        .args(["--exact", &format!("sandbox::{name}"), "--nocapture"])
        .env(PROGRAM, program)
        .env("HOME", home)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .current_dir("/")
        .output();
    match ran {
        Ok(ran) => assert!(
            ran.status.success() && String::from_utf8_lossy(&ran.stdout).contains("1 passed"),
            "as an ordinary user: {}{}",
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr)
        ),
        Err(e) => eprintln!("{name}: not run as an ordinary user: setpriv: {e}"),
    }
}

/// The folder to work in, if this process is a caller that a test started.
pub fn as_caller() -> Option<PathBuf> {
    env::var_os(CALLER).map(PathBuf::from)
}

/// What is asserted of a command that has ended.
#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    pub tail: Vec<String>,
    pub left_behind: Vec<Leftover>,
    pub sandboxed: bool,
    pub out_of_memory: u64,
}

pub struct Bench {
    folder: PathBuf,
    _kept: Option<tempfile::TempDir>,
}

impl Bench {
    pub fn new() -> Self {
        let kept = tempfile::tempdir().unwrap();
        Self { folder: fs::canonicalize(kept.path()).unwrap(), _kept: Some(kept) }
    }

    pub fn at(folder: PathBuf) -> Self {
        Self { folder, _kept: None }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The names in the folder.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A sandbox in which the folder can be written.
    pub fn sandbox(&self) -> Sandbox {
        let folder = Mount { at: self.folder.clone(), what: MountKind::Writable(self.folder.clone()) };
        Sandbox { mounts: vec![folder], ..Sandbox::default() }
    }

    pub fn command(&self, text: &str) -> Command {
        Command::new(text, &self.folder, LIMIT)
    }

    pub fn run(&self, text: &str) -> Ended {
        self.run_in(self.sandbox(), text)
    }

    pub fn run_in(&self, sandbox: Sandbox, text: &str) -> Ended {
        let mut command = self.command(text);
        command.sandbox = Some(sandbox);
        let ended = end(&command);
        let ran = !matches!(ended.exit, Exit::NoSandbox { .. });
        assert_eq!(ended.sandboxed, ran, "{ended:?}");
        ended
    }

    pub fn run_open(&self, text: &str) -> Ended {
        end(&self.command(text))
    }

    pub fn start_caller(&self, name: &str) -> Child {
        std::process::Command::new(env::current_exe().unwrap())
            .args(["--exact", &format!("sandbox::{name}")])
            .env(CALLER, &self.folder)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    }

    pub fn wait_for(&self, name: &str) {
        until(|| !self.file(name).is_empty(), name);
    }

    /// Waits until no process carries `mark` or works in the folder.
    pub fn wait_until_gone(&self, mark: &str) {
        assert!(!mark.is_empty());
        let here = |pid: i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let in_folder =
                fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&self.folder));
            in_folder || String::from_utf8_lossy(&environment).contains(mark)
        };
        until(|| !processes().into_iter().any(here), "all to be gone");
    }
}

fn end(command: &Command) -> Ended {
    let (finished, output) = command.start(&supervisor()).unwrap().wait().unwrap();
    Ended {
        exit: finished.exit,
        tail: output.tail(200),
        left_behind: finished.left_behind,
        sandboxed: finished.sandboxed,
        out_of_memory: finished.out_of_memory,
    }
}

fn until(what: impl Fn() -> bool, name: &str) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < HANG, "waited for {name}");
        sleep(Duration::from_millis(5));
    }
}

/// The processes that have not ended.
fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(state, _)| state != "Z" && state != "X")).collect()
}

/// State and parent of a process.
fn stat(pid: i32) -> Option<(String, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

pub fn parent_of(pid: i32) -> Option<i32> {
    stat(pid).map(|(_, parent)| parent).filter(|parent| *parent > 0)
}

pub fn child_of(parent: i32) -> i32 {
    processes().into_iter().find(|pid| parent_of(*pid) == Some(parent)).unwrap()
}

/// The processes from one below this with this command line up to the watcher next to this one.
pub fn line_to(line: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let is = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ").trim() == line
    };
    let mut lines = processes()
        .into_iter()
        .filter(is)
        .map(|pid| -> Vec<i32> { std::iter::successors(Some(pid), |pid| parent_of(*pid)).collect() });
    let below = |mut line: Vec<i32>| {
        line.truncate(line.iter().position(|pid| *pid == own)?);
        Some(line)
    };
    lines.find_map(below).unwrap()
}

pub fn wait_until_ended(pids: &[i32]) {
    until(|| !processes().iter().any(|pid| pids.contains(pid)), "processes to end");
}

/// Makes a control group with a limit of memory, if this user may.
pub fn memory_group(bytes: u64) -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let (line, limit) = match groups.lines().find(|line| line.contains(":memory:")) {
        Some(line) => (line, "memory.limit_in_bytes"),
        None => (groups.lines().next()?, "memory.max"),
    };
    let root = if limit == "memory.max" { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/memory" };
    let own = Path::new(root).join(line.splitn(3, ':').nth(2)?.trim_start_matches('/'));
    let group = own.join(format!("ocx-test-{}", std::process::id()));
    fs::create_dir(&group).ok()?;
    if fs::write(group.join(limit), bytes.to_string()).is_err() {
        fs::remove_dir(&group).ok();
        return None;
    }
    Some(group)
}
