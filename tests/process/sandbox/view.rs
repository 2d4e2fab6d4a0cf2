//! What a sandboxed command sees: what ordinary tests need, and the mounts that were asked for.

use std::{fs, os::unix::fs::symlink, path::Path};

use super::bench::{Bench, everyone};
use ocx::process::{Exit, Mount, MountKind, Sandbox};

/// Lines that say what failed. What the machine itself lacks is asked outside too.
const NEEDS: &str = r#"
check() { name=$1; shift; ("$@") >/dev/null 2>&1 || echo "$name"; }
has() { test "$(eval echo \$$1)" = "$2"; }
check user getent passwd "$(id -u)"
check name test -n "$USER"
check home touch "$HOME/file"
check tmp touch "$TMPDIR/file" /tmp/file /var/tmp/file
check localhost4 sh -c 'getent ahostsv4 localhost | grep -q 127.0.0.1'
check localhost6 sh -c 'getent ahostsv6 localhost | grep -q ::1'
check hostname sh -c 'getent hosts "$(hostname)"'
check service getent services http
check protocol getent protocols tcp
check shm dd if=/dev/zero of=/dev/shm/ocx-test bs=1M count=512
rm -f /dev/shm/ocx-test
check terminal script -qec true /dev/null
check zone sh -c 'TZ=Europe/Berlin date +%z | grep -q 0[12]00'
check lang has LANG C.UTF-8
check term has TERM dumb
check ci has CI 1
check no_lc sh -c '! env | grep -q ^LC_'
check descriptors sh -c 'echo x > /dev/stdout && cat < /dev/null > /dev/fd/1'
check processors test "$(nproc)" -ge 1
py() { if command -v python3 >/dev/null; then python3 -c "$2" >/dev/null 2>&1 || echo "python_$1"; fi; }
py user 'import os,pwd; pwd.getpwuid(os.getuid())'
py lock 'import multiprocessing; multiprocessing.Lock()'
py queue 'import multiprocessing as m; p=m.Pool(2); assert p.map(abs,[-1])==[1]'
py openpty 'import os; os.openpty()'
py utf8 'print("\u00e9")'
py loopback 'import socket as s; l=s.create_server(("127.0.0.1",0)); s.create_connection(l.getsockname())'
py loopback6 'import socket as s; l=s.create_server(("::1",0),family=s.AF_INET6); s.create_connection(l.getsockname()[:2])'
py seqpacket 'import socket as s; s.socketpair(s.AF_UNIX,s.SOCK_SEQPACKET)'
py names 'import socket as s; s.gethostbyname("localhost"); s.gethostbyname(s.gethostname())'
exit 0
"#;

#[test]
fn n20_what_ordinary_tests_need_is_there() {
    everyone("view::n20_what_ordinary_tests_need_is_there", || {
        let bench = Bench::new();
        let outside = bench.run_open(NEEDS).tail;
        let ended = bench.run(NEEDS);
        assert_eq!(ended.exit, Exit::Status(0));
        // Files of the machine's that need not be installed.
        let mut may_lack = vec!["service", "protocol", "terminal", "zone"];
        if !Path::new("/proc/net/if_inet6").exists() {
            may_lack.extend(["localhost6", "python_loopback6"]);
        }
        let lacking = ended.tail.iter().filter(|n| !may_lack.contains(&n.as_str()) || !outside.contains(n));
        assert_eq!(lacking.collect::<Vec<_>>(), Vec::<&String>::new());
    });
}

fn with(bench: &Bench, mounts: &[(&Path, MountKind)]) -> Sandbox {
    let mut sandbox = bench.sandbox();
    sandbox.mounts.extend(mounts.iter().map(|(at, what)| Mount { at: at.to_path_buf(), what: what.clone() }));
    sandbox
}

/// Every file below a folder with its content, and every folder.
fn content(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.push((path.clone(), fs::read(&path).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_layered_folder_keeps_what_is_below_byte_for_byte() {
    everyone("view::a_layered_folder_keeps_what_is_below_byte_for_byte", || {
        let bench = Bench::new();
        let side = Bench::new();
        let [lower, upper, work] = ["low,er:\\ x", "upp,er", "work"].map(|name| side.path(name));
        for folder in [&lower, &upper, &work, &lower.join("pkg"), &bench.path("node_modules")] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(lower.join("pkg/a.js"), "a").unwrap();
        fs::write(lower.join("b.js"), "b").unwrap();
        let before = content(&lower);
        let layers = MountKind::Layered { lower: lower.clone(), upper: upper.clone(), work };
        let sandbox = with(&bench, &[(&bench.path("node_modules"), layers)]);
        let change = "cd node_modules && cat pkg/a.js b.js && echo changed > pkg/a.js && rm b.js && mkdir .cache && \
                      mv pkg pkg2 && cat pkg2/a.js";
        let ended = bench.run_in(sandbox, change);
        assert_eq!((ended.exit, ended.tail), (Exit::Status(0), vec!["abchanged".to_owned()]));
        assert_eq!(content(&lower), before);
        assert!(upper.join(".cache").is_dir());
        assert_eq!(content(&bench.path("node_modules")), []);
    });
}

#[test]
fn mounts_are_made_in_order_and_hidden_ones_are_empty() {
    everyone("view::mounts_are_made_in_order_and_hidden_ones_are_empty", || {
        let (bench, side) = (Bench::new(), Bench::new());
        for folder in [side.path("cache"), side.path("cache/open"), bench.path("secret")] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(bench.path("secret/key"), "key").unwrap();
        fs::write(bench.path("token"), "token").unwrap();
        fs::write(side.path("cache/index"), "index\n").unwrap();
        let mounts = [
            (&*bench.path("secret"), MountKind::Hidden),
            (&bench.path("token"), MountKind::Hidden),
            (&bench.path("not-there"), MountKind::Hidden),
            (Path::new("/home/ocx/.cache/deep"), MountKind::ReadOnly(side.path("cache"))),
            (Path::new("/home/ocx/.cache/deep/open"), MountKind::Writable(side.path("cache/open"))),
        ];
        let script = "ls -A secret; cat token; (echo x > secret/y) 2>/dev/null && echo wrote\n\
                      (echo x > token) 2>/dev/null && echo wrote; cat ~/.cache/deep/index\n\
                      (echo x > ~/.cache/deep/new) 2>/dev/null && echo wrote; echo new > ~/.cache/deep/open/new; ls -A";
        let ended = bench.run_in(with(&bench, &mounts), script);
        assert_eq!(
            (ended.exit, ended.tail),
            (Exit::Status(0), ["index", "secret", "token"].map(String::from).into())
        );
        assert_eq!(fs::read_to_string(side.path("cache/open/new")).unwrap(), "new\n");
        assert_eq!((bench.file("token"), bench.file("secret/key")), ("token".to_owned(), "key".to_owned()));
        assert_eq!(bench.names(), ["secret", "token"]);
    });
}

#[test]
fn n23_a_mount_point_is_never_made_on_the_machine() {
    everyone("view::n23_a_mount_point_is_never_made_on_the_machine", || {
        let (bench, side) = (Bench::new(), Bench::new());
        fs::create_dir(side.path("tree")).unwrap();
        fs::write(side.path("tree/kept"), "kept\n").unwrap();
        symlink("kept", side.path("tree/link")).unwrap();
        let what = || MountKind::ReadOnly(side.path("tree"));
        // Below a folder that can be written it would stay there: refused, and nothing runs.
        let ended = bench.run_in(with(&bench, &[(&bench.path("node_modules"), what())]), "touch ran");
        assert!(matches!(&ended.exit, Exit::NoSandbox { why } if why.contains("node_modules")), "{ended:?}");
        assert!(bench.names().is_empty());
        // Below a read-only folder, the command sees a copy of it that has the mount point.
        let mounts = [
            (Path::new("/ro"), what()),
            (Path::new("/ro/new/deep"), what()),
            (Path::new("/usr/share/ocx-x"), what()),
        ];
        let script = "cat /ro/kept /ro/link /ro/new/deep/kept /usr/share/ocx-x/kept; ls /usr/share | wc -l\n\
                      (echo x > /ro/x) 2>/dev/null && echo wrote; (echo x > /ro/new/x) 2>/dev/null && echo wrote; exit 0";
        let ended = bench.run_in(with(&bench, &mounts), script);
        let shares = fs::read_dir("/usr/share").unwrap().count() + 1;
        let expected: Vec<_> =
            ["kept"; 4].into_iter().map(String::from).chain([shares.to_string()]).collect();
        assert_eq!((ended.exit, ended.tail), (Exit::Status(0), expected));
        assert_eq!(side.names(), ["tree"]);
        assert!(!Path::new("/usr/share/ocx-x").exists() && !side.path("tree/new").exists());
    });
}
