//! The filter of system calls: what would leave the namespaces or opens too much of the kernel is refused.
//!
//! The program is written out, because a filter made from rules ends every 32-bit program: a process may also make the
//! calls of the older 32-bit table, which has other numbers, so each table has a block.

use seccompiler::{apply_filter, sock_filter};

/// One table of system calls that the machine has.
struct Table {
    /// The kernel's name of it, `AUDIT_ARCH_*`.
    arch: u32,
    /// Refused with `EPERM`: keyctl, `add_key`, `request_key`, bpf, `perf_event_open`, userfaultfd.
    refused: [u32; 6],
    socket: u32,
    /// clone and unshare, whose first argument says which namespaces are made.
    separating: [u32; 2],
    /// A call that hides which socket is meant. It is told to be missing, and programs use `socket`.
    socketcall: Option<u32>,
    /// Numbers from here on are a second table of the same name.
    end: u32,
}

#[cfg(target_arch = "x86_64")]
const TABLES: &[Table] = &[
    Table {
        arch: 0xC000_003E,
        refused: [250, 248, 249, 321, 298, 323],
        socket: 41,
        separating: [56, 272],
        socketcall: None,
        end: 0x4000_0000,
    },
    Table {
        arch: 0x4000_0003,
        refused: [288, 286, 287, 357, 336, 374],
        socket: 359,
        separating: [120, 310],
        socketcall: Some(102),
        end: u32::MAX,
    },
];
#[cfg(target_arch = "aarch64")]
const TABLES: &[Table] = &[
    Table {
        arch: 0xC000_00B7,
        refused: [219, 217, 218, 280, 241, 282],
        socket: 198,
        separating: [220, 97],
        socketcall: None,
        end: u32::MAX,
    },
    Table {
        arch: 0x4000_0028,
        refused: [311, 309, 310, 386, 364, 388],
        socket: 281,
        separating: [120, 337],
        socketcall: None,
        end: u32::MAX,
    },
];
#[cfg(target_arch = "riscv64")]
const TABLES: &[Table] = &[Table {
    arch: 0xC000_00F3,
    refused: [219, 217, 218, 280, 241, 282],
    socket: 198,
    separating: [220, 97],
    socketcall: None,
    end: u32::MAX,
}];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const TABLES: &[Table] = &[];

/// `io_uring_setup`, `io_uring_enter` and `io_uring_register`, in every table.
const IO_URING: [u32; 3] = [425, 426, 427];
/// It is told to be missing where namespaces are refused: a filter cannot see what it is to do. Programs use clone.
const CLONE3: u32 = 435;
const CLONE_NEWUSER: u32 = 0x1000_0000;
/// Who owns a namespace of control groups can mount them, and root can then end the machine's processes by them.
const CLONE_NEWCGROUP: u32 = 0x0200_0000;
/// UNIX, INET, INET6, NETLINK. Others, such as VSOCK, know no network namespace.
const FAMILIES: [u32; 4] = [1, 2, 10, 16];

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_SET: u16 = 0x45;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0001;
const ENOSYS: u32 = 0x0005_0026;
/// Where a call's number, its table and the low half of its first argument stand.
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const ARGUMENT_AT: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };

/// The namespaces that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespaces {
    /// Whatever the kernel lets be made.
    Any,
    /// All but those of control groups.
    Nested,
    /// No user namespaces, and so none at all.
    None,
}

impl Namespaces {
    /// The flags of clone and unshare that are refused.
    fn refused(self) -> u32 {
        match self {
            Self::Any => 0,
            Self::Nested => CLONE_NEWCGROUP,
            Self::None => CLONE_NEWUSER | CLONE_NEWCGROUP,
        }
    }
}

/// Sets the filter for the calling process and all that it starts.
pub(super) fn set(namespaces: Namespaces) -> Result<(), String> {
    if TABLES.is_empty() {
        return Err("system calls cannot be filtered on this kind of processor".into());
    }
    apply_filter(&program(namespaces)).map_err(|e| format!("the filter of system calls was refused: {e}"))
}

fn program(namespaces: Namespaces) -> Vec<sock_filter> {
    let mut program = vec![step(LOAD, ARCH_AT, 0, 0)];
    for table in TABLES {
        let block = block(table, namespaces);
        let past = u8::try_from(block.len()).unwrap_or(u8::MAX);
        program.push(step(JUMP_IF_EQUAL, table.arch, 0, past));
        program.extend(block);
    }
    program.push(step(RETURN, ENOSYS, 0, 0));
    program
}

fn block(table: &Table, namespaces: Namespaces) -> Vec<sock_filter> {
    let mut block = vec![step(LOAD, NUMBER_AT, 0, 0)];
    block.extend([step(JUMP_IF_AT_LEAST, table.end, 0, 1), step(RETURN, ENOSYS, 0, 0)]);
    for number in table.refused.into_iter().chain(IO_URING) {
        block.extend([step(JUMP_IF_EQUAL, number, 0, 1), step(RETURN, EPERM, 0, 0)]);
    }
    if let Some(number) = table.socketcall {
        block.extend([step(JUMP_IF_EQUAL, number, 0, 1), step(RETURN, ENOSYS, 0, 0)]);
    }
    let refused = namespaces.refused();
    if refused != 0 {
        block.extend([step(JUMP_IF_EQUAL, CLONE3, 0, 1), step(RETURN, ENOSYS, 0, 0)]);
        for number in table.separating {
            block.extend([step(JUMP_IF_EQUAL, number, 0, 4), step(LOAD, ARGUMENT_AT, 0, 0)]);
            block.extend([step(JUMP_IF_SET, refused, 0, 1), step(RETURN, EPERM, 0, 0)]);
            block.push(step(RETURN, ALLOW, 0, 0));
        }
    }
    block.extend([step(JUMP_IF_EQUAL, table.socket, 1, 0), step(RETURN, ALLOW, 0, 0)]);
    block.push(step(LOAD, ARGUMENT_AT, 0, 0));
    for family in FAMILIES {
        block.extend([step(JUMP_IF_EQUAL, family, 0, 1), step(RETURN, ALLOW, 0, 0)]);
    }
    block.push(step(RETURN, EPERM, 0, 0));
    block
}

/// One instruction; `yes` and `no` say how many of the next ones are passed over.
fn step(code: u16, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code, jt: yes, jf: no, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter says to a call.
    fn says(namespaces: Namespaces, arch: u32, number: u32, argument: u32) -> u32 {
        let program = program(namespaces);
        let (mut at, mut held) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let jump = |yes| usize::from(if yes { jt } else { jf });
            match code {
                LOAD if k == NUMBER_AT => held = number,
                LOAD if k == ARCH_AT => held = arch,
                LOAD => held = argument,
                JUMP_IF_EQUAL => at += jump(held == k),
                JUMP_IF_AT_LEAST => at += jump(held >= k),
                JUMP_IF_SET => at += jump(held & k != 0),
                _ => return k,
            }
        }
    }

    #[test]
    fn each_table_refuses_what_leaves_the_namespaces_and_lets_the_rest_through() {
        for table in TABLES {
            for namespaces in [Namespaces::Any, Namespaces::Nested, Namespaces::None] {
                let says = |number, argument| says(namespaces, table.arch, number, argument);
                for number in table.refused.into_iter().chain(IO_URING) {
                    assert_eq!(says(number, 0), EPERM);
                }
                for family in 0..50 {
                    let expected = if FAMILIES.contains(&family) { ALLOW } else { EPERM };
                    assert_eq!(says(table.socket, family), expected);
                }
                for number in table.separating {
                    assert_eq!(says(number, 0x11), ALLOW);
                    for flag in [CLONE_NEWUSER, CLONE_NEWCGROUP] {
                        let expected = if namespaces.refused() & flag == 0 { ALLOW } else { EPERM };
                        assert_eq!(says(number, flag | 0x11), expected);
                    }
                }
                assert_eq!(says(CLONE3, 0), if namespaces == Namespaces::Any { ALLOW } else { ENOSYS });
                assert_eq!(says(1, 0), ALLOW);
                if let Some(number) = table.socketcall {
                    assert_eq!(says(number, 1), ENOSYS);
                }
            }
        }
        assert_eq!(says(Namespaces::Any, 1, 1, 0), ENOSYS);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_x32_table_is_not_there() {
        assert_eq!(says(Namespaces::Any, TABLES[0].arch, TABLES[0].end | 0x29, 40), ENOSYS);
    }
}
