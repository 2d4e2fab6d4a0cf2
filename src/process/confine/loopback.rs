//! The loopback of a new network namespace. It is there, but down.
//!
//! A resolver that is asked for addresses of a kind that the machine has (`AI_ADDRCONFIG`) counts neither 127.0.0.1 nor
//! `::1`, and then finds no `localhost`. So the loopback has another address of each kind.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::{
    fd::{AsFd, BorrowedFd},
    io::{Errno, Result},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with},
};

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const IFF_UP: u32 = 1;
const IFA_F_PERMANENT: u8 = 0x80;
const IFA_LOCAL: u16 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const RT_SCOPE_HOST: u8 = 254;
/// The loopback is the first interface of each namespace.
const INDEX: u32 = 1;
const HEADER_BYTES: u32 = 16;
/// Where an answer holds its error, negative or 0.
const ERROR_AT: usize = 16;

/// Switches the loopback on; the kernel then gives it 127.0.0.1 and `::1`. Adds the address of the
/// sandbox's own name.
pub(super) fn up(name: Ipv4Addr) -> Result<()> {
    // The protocol for interfaces is the one with number 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    ask(socket.as_fd(), RTM_NEWLINK, &[0, INDEX, IFF_UP, IFF_UP].map(u32::to_ne_bytes).concat())?;
    ask(socket.as_fd(), RTM_NEWADDR, &address(name.into(), 8))?;
    // The machine may know no IPv6.
    let _added =
        ask(socket.as_fd(), RTM_NEWADDR, &address(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).into(), 128));
    Ok(())
}

/// Family, bits of the network, flags and scope; the interface; then the address, with its length and kind before it.
fn address(address: IpAddr, bits: u8) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    };
    let length = u16::try_from(4 + octets.len()).unwrap_or_default();
    let mut bytes = vec![family, bits, IFA_F_PERMANENT, RT_SCOPE_HOST];
    bytes.extend(INDEX.to_ne_bytes());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(IFA_LOCAL.to_ne_bytes());
    bytes.extend(octets);
    bytes
}

/// Sends a request and awaits its answer. Before the request stand its length, kind, flags, number and sender.
fn ask(socket: BorrowedFd<'_>, kind: u16, request: &[u8]) -> Result<()> {
    let length = HEADER_BYTES + u32::try_from(request.len()).unwrap_or_default();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    bytes.extend([1, 0].map(u32::to_ne_bytes).concat());
    bytes.extend(request);
    send(socket, &bytes, SendFlags::empty())?;
    let mut answer = [0; 512];
    let (length, _) = recv(socket, &mut answer, RecvFlags::empty())?;
    let error = answer[..length].get(ERROR_AT..ERROR_AT + 4).and_then(|bytes| bytes.try_into().ok());
    match error.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(Errno::from_raw_os_error(-error)),
        None => Err(Errno::PROTO),
    }
}
