//! The order in which a set of artifacts is expanded: each after its basis, and so that few contents
//! must be kept at a time, however deep or broad the deltas are.

use std::collections::HashSet;

use super::row::{Basis, Row};
use crate::error::{Error, Kind, Result};

/// Which rows are deltas from which: a forest, whose roots are whole or have an external basis.
pub(super) struct Order {
    roots: Vec<u32>,
    /// The children of row `i` stand at `starts[i]..starts[i + 1]`, the one with most below it first.
    starts: Vec<u32>,
    children: Vec<u32>,
}

impl Order {
    /// # Errors
    /// [`Kind::Invalid`] when deltas run in a circle.
    pub fn of(rows: &[Row]) -> Result<Self> {
        let mut starts = vec![0_u32; rows.len() + 1];
        for row in rows {
            if let Basis::Row(basis) = row.basis {
                starts[basis + 1] += 1;
            }
        }
        for i in 0..rows.len() {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut children = vec![0; rows.len()];
        let mut roots = Vec::new();
        for (i, row) in (0_u32..).zip(rows) {
            match row.basis {
                Basis::Row(basis) => {
                    children[next[basis] as usize] = i;
                    next[basis] += 1;
                }
                Basis::None | Basis::External(_) => roots.push(i),
            }
        }
        let mut order = Self { roots, starts, children };
        let by_level = order.by_level();
        if by_level.len() < rows.len() {
            return Err(in_a_circle(rows, &by_level));
        }
        order.sort_children(rows, &by_level);
        Ok(order)
    }

    /// The rows that need no other row to be expanded.
    pub fn roots(&self) -> &[u32] {
        &self.roots
    }

    /// The deltas from a row. Take them from the last to the first, and all below one before the next. Then the
    /// contents to keep at a time are at most as many as the number of rows has binary digits.
    pub fn children(&self, row: u32) -> &[u32] {
        &self.children[self.starts[row as usize] as usize..self.starts[row as usize + 1] as usize]
    }

    /// Which rows must be expanded for some of them: those, and what they are deltas from.
    pub fn with_what_it_builds_on(rows: &[Row], some: &HashSet<usize>) -> Vec<bool> {
        let mut needed = vec![false; rows.len()];
        for &row in some {
            let mut at = row;
            while !std::mem::replace(&mut needed[at], true)
                && let Basis::Row(basis) = rows[at].basis
            {
                at = basis;
            }
        }
        needed
    }

    /// All rows that can be reached from the roots, parents first.
    fn by_level(&self) -> Vec<u32> {
        let mut found = self.roots.clone();
        let mut at = 0;
        while let Some(&row) = found.get(at) {
            found.extend_from_slice(self.children(row));
            at += 1;
        }
        found
    }

    fn sort_children(&mut self, rows: &[Row], by_level: &[u32]) {
        let mut below = vec![1_u32; rows.len()];
        for &row in by_level.iter().rev() {
            if let Basis::Row(basis) = rows[row as usize].basis {
                below[basis] += below[row as usize];
            }
        }
        for range in self.starts.windows(2) {
            self.children[range[0] as usize..range[1] as usize]
                .sort_unstable_by_key(|&child| std::cmp::Reverse(below[child as usize]));
        }
    }
}

fn in_a_circle(rows: &[Row], reached: &[u32]) -> Error {
    let mut is_reached = vec![false; rows.len()];
    for &row in reached {
        is_reached[row as usize] = true;
    }
    let first = is_reached.iter().position(|reached| !reached).unwrap_or(0);
    Error::new(
        Kind::Invalid,
        format!("the deltas of artifact `{}` run in a circle", rows[first].hash.short()),
    )
    .with_hint("Get it anew.")
}

#[cfg(test)]
mod tests {
    use super::super::row::Keep;
    use super::*;
    use crate::name::Hash;

    fn rows(bases: &[Option<usize>]) -> Vec<Row> {
        let row = |(i, basis): (usize, &Option<usize>)| Row {
            id: i64::try_from(i).unwrap(),
            hash: Hash::of(&i.to_be_bytes()),
            size: 1,
            basis: basis.map_or(Basis::None, Basis::Row),
            keep: Keep::Public,
        };
        bases.iter().enumerate().map(row).collect()
    }

    #[test]
    fn rows_follow_their_basis_wherever_it_stands() {
        let order = Order::of(&rows(&[Some(2), Some(2), None, Some(0)])).unwrap();
        assert_eq!(order.roots(), [2]);
        assert_eq!(order.children(2), [0, 1]);
        assert_eq!(order.children(0), [3]);
        assert!(order.children(3).is_empty());
    }

    #[test]
    fn a_circle_and_a_row_based_on_itself_are_refused() {
        for bases in [&[None, Some(2), Some(1)][..], &[Some(0)]] {
            assert_eq!(Order::of(&rows(bases)).err().map(|e| e.kind()), Some(Kind::Invalid));
        }
    }

    #[test]
    fn a_chain_of_any_depth_is_ordered_in_constant_stack() {
        let bases: Vec<_> = (0..200_000_usize).map(|i| i.checked_sub(1)).collect();
        let order = Order::of(&rows(&bases)).unwrap();
        assert_eq!(order.children(199_998), [199_999]);
    }
}
