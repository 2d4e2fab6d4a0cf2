//! Inputs that are almost right: seeds with a few bytes changed, the way hostile and damaged ones are.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Numbers that lengths go wrong at, in decimal.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "65535",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "18446744073709551616",
    "-1",
];
/// Bytes that mean something in Fossil's formats.
const BYTES: &[u8] = b"\0\n\r\t \\%0:@,;~/+-*ABCDEFGHIJKLMNPQRTUWZabz\x7f\x80\xff";

#[derive(Debug, Clone)]
enum Mutation {
    Set(Index, u8),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    Number(Index, &'static str),
    Cut(Index),
    /// The end of another seed follows.
    Splice(Index, Index, Index),
    /// Two lines change places.
    Swap(Index, Index),
}

/// A seed with up to eight mutations.
pub fn mutated(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    (select(seeds.clone()), vec(mutation(), 0..8)).prop_map(move |(mut bytes, mutations)| {
        for mutation in mutations {
            apply(&mut bytes, mutation, &seeds);
        }
        bytes
    })
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        (at(), select(BYTES)).prop_map(|(i, b)| Mutation::Set(i, b)),
        (at(), 0..8u8).prop_map(|(i, bit)| Mutation::Flip(i, bit)),
        (at(), vec(select(BYTES), 1..20)).prop_map(|(i, b)| Mutation::Insert(i, b)),
        (at(), 1..40usize).prop_map(|(i, n)| Mutation::Remove(i, n)),
        (at(), 1..40usize, 1..40usize).prop_map(|(i, n, times)| Mutation::Repeat(i, n, times)),
        (at(), select(NUMBERS)).prop_map(|(i, n)| Mutation::Number(i, n)),
        at().prop_map(Mutation::Cut),
        (at(), at(), at()).prop_map(|(i, seed, from)| Mutation::Splice(i, seed, from)),
        (at(), at()).prop_map(|(i, k)| Mutation::Swap(i, k)),
    ]
}

fn apply(bytes: &mut Vec<u8>, mutation: Mutation, seeds: &[Vec<u8>]) {
    if bytes.is_empty() {
        return;
    }
    let size = bytes.len();
    match mutation {
        Mutation::Set(i, byte) => bytes[i.index(size)] = byte,
        Mutation::Flip(i, bit) => bytes[i.index(size)] ^= 1 << bit,
        Mutation::Insert(i, some) => drop(bytes.splice(i.index(size)..i.index(size), some)),
        Mutation::Remove(i, n) => {
            let at = i.index(size);
            bytes.drain(at..(at + n).min(size));
        }
        Mutation::Repeat(i, n, times) => {
            let at = i.index(size);
            let piece = bytes[at..(at + n).min(size)].repeat(times);
            drop(bytes.splice(at..at, piece));
        }
        Mutation::Number(i, number) => {
            let at = i.index(size);
            let end = bytes[at..].iter().position(|b| !b.is_ascii_digit()).map_or(size, |n| at + n);
            drop(bytes.splice(at..end, number.bytes()));
        }
        Mutation::Cut(i) => bytes.truncate(i.index(size)),
        Mutation::Splice(i, seed, from) => {
            let seed = seed.get(seeds);
            bytes.truncate(i.index(size));
            bytes.extend(&seed[from.index(seed.len() + 1)..]);
        }
        Mutation::Swap(i, k) => {
            let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
            let (i, k) = (i.index(lines.len()), k.index(lines.len()));
            lines.swap(i, k);
            *bytes = lines.concat();
        }
    }
}
