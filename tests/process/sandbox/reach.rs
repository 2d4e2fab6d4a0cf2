//! What a sandboxed command can reach of the machine: nothing that matters.

use std::{
    env, fs,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
};

use super::bench::{Bench, everyone};
use ocx::process::{Exit, Mount, MountKind, Sandbox, hide_from_debuggers};
use rustix::net::{AddressFamily, SocketType, socket};

#[test]
fn v06_databases_homes_and_secrets_are_out_of_reach() {
    everyone("reach::v06_databases_homes_and_secrets_are_out_of_reach", || {
        let (bench, other) = (Bench::new(), Bench::new());
        fs::write(other.path("r.fossil"), "repository").unwrap();
        let home = env::var("HOME").unwrap();
        let script = format!(
            "ls {0} 2>/dev/null && echo repository; {{ echo x > {0}; }} 2>/dev/null; ls -A {home}/* 2>/dev/null\n\
             cat /etc/shadow /etc/gshadow /etc/sudoers /etc/ssh/ssh_host_*_key 2>/dev/null\n\
             ls /root /var/lib /srv /mnt /media /boot 2>/dev/null\n\
             for f in $(find /etc -type f ! -perm -004 2>/dev/null); do cat $f 2>/dev/null; done; exit 0",
            other.path("r.fossil").display()
        );
        let ended = bench.run(&script);
        assert_eq!((ended.exit, ended.tail), (Exit::Status(0), vec![]));
        assert_eq!(other.file("r.fossil"), "repository");
    });
}

#[test]
fn the_machine_is_read_only() {
    everyone("reach::the_machine_is_read_only", || {
        let bench = Bench::new();
        let before = fs::read("/proc/sys/vm/swappiness").unwrap();
        let null = fs::metadata("/dev/null").unwrap();
        let script = "for f in /usr/x /etc/x /x /dev/x /opt/x /proc/sys/vm/swappiness /proc/sys/kernel/core_pattern \
                      /proc/sys/kernel/hostname /proc/sys/net/ipv4/ip_forward /proc/sysrq-trigger \
                      /sys/devices/system/cpu/cpu1/online /proc/sys/user/max_user_namespaces; do \
                      if { echo 7 > $f; } 2>/dev/null; then echo \"wrote $f\"; fi; done\n\
                      for f in / /usr /proc/sys /etc/hosts; do mount -o remount,bind,rw $f 2>/dev/null && echo \"$f\"; done\n\
                      umount /etc/hosts 2>/dev/null && echo unmounted\n\
                      mknod /tmp/d b 254 0 2>/dev/null && echo device\n\
                      chmod 700 /dev/null /dev/tty /usr /etc/passwd /proc/sys 2>/dev/null && echo changed\n\
                      touch -t 200001010000 /dev/null 2>/dev/null && echo touched\n\
                      for f in $(find /proc -maxdepth 3 ! -path '/proc/[0-9]*' ! -path '/proc/*self*' -type f -perm -200 \
                      ! -path '/proc/net*' 2>/dev/null); do [ -w $f ] && echo $f; done\n\
                      hostname other 2>/dev/null && echo named; exit 0";
        let ended = bench.run(script);
        assert_eq!((ended.exit, ended.tail), (Exit::Status(0), vec![]));
        assert_eq!(fs::read("/proc/sys/vm/swappiness").unwrap(), before);
        assert_eq!(fs::metadata("/dev/null").unwrap().permissions(), null.permissions());
    });
}

#[test]
fn the_network_of_the_machine_is_reached_only_when_asked_for() {
    everyone("reach::the_network_of_the_machine_is_reached_only_when_asked_for", || {
        let bench = Bench::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let name = format!("ocx-test-{port}");
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let script = format!(
            "(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached; grep -c {name} /proc/net/unix; exit 0"
        );
        assert_eq!(bench.run(&script).tail, ["0"]);
        let open = Sandbox { network: true, ..bench.sandbox() };
        assert_eq!(bench.run_in(open, &script).tail, ["reached", "1"]);
    });
}

#[test]
fn v12_other_processes_and_their_variables_are_out_of_sight() {
    everyone("reach::v12_other_processes_and_their_variables_are_out_of_sight", || {
        let pid = std::process::id();
        let script = format!(
            "kill -0 {pid} 2>/dev/null && [ {pid} -gt 1000 ] && echo signal\n\
             cat /proc/$PPID/environ 2>/dev/null; cat /proc/1/environ 2>/dev/null; ls /proc/1/cwd/ /proc/1/fd/1/ /proc/1/root/ 2>/dev/null\n\
             cat /proc/1/mem 2>/dev/null; (echo x > /proc/1/fd/1) 2>/dev/null && echo pipe\n\
             cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep CARGO_MANIFEST; exit 0"
        );
        let ended = Bench::new().run(&script);
        assert_eq!((ended.exit, ended.tail), (Exit::Status(0), vec![]));
    });
}

#[test]
fn v12_a_hidden_process_shows_an_ordinary_user_nothing() {
    everyone("reach::v12_a_hidden_process_shows_an_ordinary_user_nothing", || {
        if rustix::process::getuid().is_root() {
            return;
        }
        let look = format!("cat /proc/{}/environ > /dev/null 2>&1 && echo seen; exit 0", std::process::id());
        assert_eq!(Bench::new().run_open(&look).tail, ["seen"]);
        hide_from_debuggers();
        assert_eq!(Bench::new().run_open(&look).tail, Vec::<String>::new());
        assert_eq!(Bench::new().run("true").exit, Exit::Status(0), "what is hidden still sandboxes");
    });
}

#[test]
fn calls_that_open_too_much_of_the_kernel_are_refused() {
    everyone("reach::calls_that_open_too_much_of_the_kernel_are_refused", || {
        // The number of `io_uring_setup` is the same on every machine.
        let script = "command -v python3 >/dev/null || exit 0\n\
                      python3 -c 'import ctypes as c; l=c.CDLL(None,use_errno=True)\n\
                      assert l.syscall(425,1,0)==-1 and c.get_errno()==1, c.get_errno()'";
        let ended = Bench::new().run(script);
        assert_eq!((ended.exit, ended.tail), (Exit::Status(0), vec![]));
    });
}

#[test]
fn sockets_that_know_no_namespace_are_refused() {
    const INSIDE: &str = "OCX_INSIDE";
    if env::var_os(INSIDE).is_some() {
        for family in [AddressFamily::VSOCK, AddressFamily::PACKET, AddressFamily::from_raw(38)] {
            assert_eq!(socket(family, SocketType::STREAM, None).unwrap_err(), rustix::io::Errno::PERM);
        }
        for family in [AddressFamily::UNIX, AddressFamily::INET, AddressFamily::INET6] {
            assert!(socket(family, SocketType::STREAM, None).is_ok());
        }
        assert!(socket(AddressFamily::NETLINK, SocketType::RAW, None).is_ok());
        return;
    }
    everyone("reach::sockets_that_know_no_namespace_are_refused", || {
        let bench = Bench::new();
        let mut sandbox = bench.sandbox();
        let tests = MountKind::ReadOnly(env::current_exe().unwrap());
        sandbox.mounts.push(Mount { at: "/inside/tests".into(), what: tests });
        let mut command =
            bench.command("/inside/tests --exact sandbox::reach::sockets_that_know_no_namespace_are_refused");
        command.environment = command.environment.with(INSIDE, "1");
        command.sandbox = Some(sandbox);
        let (finished, output) = command.start(&super::supervisor()).unwrap().wait().unwrap();
        assert_eq!(finished.exit, Exit::Status(0), "{}", output.tail(50).join("\n"));
        assert!(output.tail(50).iter().any(|line| line.contains("1 passed")));
    });
}
