//! File names that Fossil drops from a manifest: those of its checkout databases.

/// Fossil's `file_is_reserved_name`: `_FOSSIL_` and `.fslckout` as a last part, in any case, also with
/// `-wal`, `-shm` or `-journal` behind (and then, as there, whatever stands before).
pub(super) fn is_reserved(path: &[u8]) -> bool {
    let (stem, has_suffix) = if path.len() >= 12 && path[path.len() - 4] == b'-' {
        let (stem, suffix) = path.split_at(path.len() - 4);
        if !is_any(suffix, &[b"-wal", b"-shm"]) {
            return false;
        }
        (stem, true)
    } else if path.len() >= 16 && path[path.len() - 8] == b'-' {
        let (stem, suffix) = path.split_at(path.len() - 8);
        if !is_any(suffix, &[b"-journal"]) {
            return false;
        }
        (stem, true)
    } else {
        (path, false)
    };
    [&b"_FOSSIL_"[..], b".fslckout"].iter().any(|name| {
        stem.len().checked_sub(name.len()).is_some_and(|start| {
            let at_part = start == 0 || stem[start - 1] == b'/';
            stem[start..].eq_ignore_ascii_case(name) && (at_part || has_suffix)
        })
    })
}

fn is_any(suffix: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|name| suffix.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::is_reserved;

    #[test]
    fn checkout_databases_are_reserved_and_their_likes_are_not() {
        for name in ["_FOSSIL_", ".fslckout", "a/.FSLCKOUT", "_fossil_-wal", "x/.fslckout-journal"] {
            assert!(is_reserved(name.as_bytes()), "{name}");
        }
        for name in ["_FOSSIL", "a_FOSSIL_", "x.fslckout", ".fslckout/a", "_FOSSIL_-foo", "-journal", ""] {
            assert!(!is_reserved(name.as_bytes()), "{name}");
        }
    }
}
