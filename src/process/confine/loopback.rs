//! The loopback of a new network namespace. It is there, but down.

use rustix::{
    io::{Errno, Result},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with},
};

const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFF_UP: u32 = 1;
/// The loopback is the first interface of each namespace.
const INDEX: u32 = 1;
const LENGTH: u32 = 32;
/// Where an answer holds its error, negative or 0.
const ERROR_AT: usize = 16;

/// Switches the loopback on; the kernel then gives it 127.0.0.1 and ::1.
pub(super) fn up() -> Result<()> {
    // The protocol for interfaces is the one with number 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &request(), SendFlags::empty())?;
    let mut answer = [0; 256];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let error = answer[..length].get(ERROR_AT..ERROR_AT + 4).and_then(|bytes| bytes.try_into().ok());
    match error.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(Errno::from_raw_os_error(-error)),
        None => Err(Errno::PROTO),
    }
}

/// A header (length, kind, flags, number, sender), then family and type, the interface, its flags, and which flags count.
fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(RTM_NEWLINK.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    for word in [1, 0, 0, INDEX, IFF_UP, IFF_UP] {
        bytes.extend(u32::to_ne_bytes(word));
    }
    bytes
}
