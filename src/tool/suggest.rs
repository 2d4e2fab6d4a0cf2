//! The name that was probably meant: for unknown tools, fields, tests and paths.

/// The candidate nearest to `given`, where one is near enough to be worth naming.
///
/// ```
/// assert_eq!(ocx::tool::suggest::nearest("file_path", ["path", "old"]), Some("path"));
/// assert_eq!(ocx::tool::suggest::nearest("ocx_reed", ["ocx_read", "ocx_edit"]), Some("ocx_read"));
/// assert_eq!(ocx::tool::suggest::nearest("zebra", ["path", "old"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = plain(given);
    candidates
        .into_iter()
        .filter_map(|c| Some((distance_within(&given, &plain(c))?, c)))
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// Case and the ways of joining words don't count.
fn plain(name: &str) -> String {
    name.chars()
        .take(200)
        .filter(|c| !matches!(c, '_' | '-' | '.' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// How far apart two names are, when near enough: a word within the other counts as near.
fn distance_within(given: &str, candidate: &str) -> Option<usize> {
    let allowed = 1 + candidate.chars().count() / 4;
    let distance = edit_distance(given, candidate);
    if distance <= allowed {
        return Some(distance);
    }
    let holds = |long: &str, short: &str| short.len() >= 3 && long.contains(short);
    (holds(given, candidate) || holds(candidate, given)).then_some(allowed + distance)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_changes() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }

    #[test]
    fn the_nearest_wins_over_the_first() {
        assert_eq!(nearest("tesst", ["text", "test"]), Some("test"));
    }
}
