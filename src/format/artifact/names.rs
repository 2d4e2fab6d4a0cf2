//! Which names Fossil takes in cards: of files, of wiki pages.

/// Whether Fossil drops the name of a file from a manifest, as its checkout databases'. This is its
/// `file_is_reserved_name`: `_FOSSIL_` and `.fslckout` as a last part, in any case, also with
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

/// Fossil's `file_is_simple_pathname_nonstrict`.
pub(super) fn is_simple_path(path: &[u8]) -> bool {
    // Only a slash after the first byte starts a further part for Fossil; a leading one is refused.
    path.split(|b| *b == b'/').all(|part| !part.is_empty() && part != b"." && part != b"..")
}

/// Fossil's `wiki_name_is_wellformed`.
pub(super) fn is_wiki_name(name: &[u8]) -> bool {
    (1..=100).contains(&name.len())
        && name.iter().all(|b| *b >= b' ')
        && name[0] != b' '
        && name[name.len() - 1] != b' '
        && !name.windows(2).any(|pair| pair == b"  ")
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
