//! Which untracked files stay out of a check-in: Fossil's `ignore-glob` lists.

/// A list of glob patterns with Fossil's meaning.
///
/// Patterns are separated by commas or white space and may stand in quotes. `*` matches any characters, also `/`; `?`
/// matches one; `[a-z]` and `[^a-z]` match one of a set. A pattern matches a whole path from the root of the checkout.
/// If it matches a folder, it matches everything in it.
///
/// ```
/// use ocx::tree::ignore::Ignore;
/// let ignore = Ignore::parse("*.o, 'two words'\ntarget/");
/// assert!(ignore.matches("src/a.o") && ignore.matches("two words"));
/// assert!(ignore.matches_folder("target") && !ignore.matches("target"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ignore(Vec<Vec<char>>);

impl Ignore {
    /// Takes the text of an `ignore-glob` setting; every text is a list.
    #[must_use]
    pub fn parse(list: &str) -> Self {
        Self(patterns(list).into_iter().map(|pattern| pattern.chars().collect()).collect())
    }

    /// Whether some pattern matches this path.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let path: Vec<char> = path.chars().collect();
        self.0.iter().any(|pattern| glob(pattern, &path))
    }

    /// Whether some pattern matches this folder, written with or without a slash at the end. Then everything in it is
    /// ignored.
    #[must_use]
    pub fn matches_folder(&self, path: &str) -> bool {
        self.matches(path) || self.matches(&format!("{path}/"))
    }
}

/// Splits a list as Fossil does: at commas and white space, except within quotes.
pub(crate) fn patterns(list: &str) -> Vec<&str> {
    let is_space = |c: char| matches!(c, ' ' | '\t'..='\r');
    let mut patterns = Vec::new();
    let mut rest = list;
    loop {
        rest = rest.trim_start_matches(|c| is_space(c) || c == ',');
        let (pattern, after) = match rest.chars().next() {
            None => return patterns,
            Some(quote @ ('\'' | '"')) => split_at_any(&rest[1..], |c| c == quote),
            Some(_) => split_at_any(rest, |c| is_space(c) || c == ','),
        };
        patterns.push(pattern);
        rest = after;
    }
}

/// Returns what stands before and after the first character that `ends` accepts.
fn split_at_any(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    match text.char_indices().find(|&(_, c)| ends(c)) {
        Some((at, c)) => (&text[..at], &text[at + c.len_utf8()..]),
        None => (text, ""),
    }
}

/// Whether `pattern` matches the whole of `text`. Takes at most the time of one length times the other.
fn glob(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on after the last `*`, letting it swallow one character more.
    let mut star = None;
    loop {
        let next = match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(_) => text.get(t).and_then(|&c| one(pattern, p, c)),
            None if t == text.len() => return true,
            None => None,
        };
        if let Some(after) = next {
            (p, t) = (after, t + 1);
            continue;
        }
        match star {
            Some((after, from)) if from < text.len() => {
                star = Some((after, from + 1));
                (p, t) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

/// Returns the place after the part of `pattern` at `p`, if that part matches `c`.
fn one(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match pattern[p] {
        '?' => Some(p + 1),
        '[' => in_set(pattern, p + 1, c),
        literal => (literal == c).then_some(p + 1),
    }
}

/// Returns the place after the set that begins at `p`, if the set is closed and holds `c`.
fn in_set(pattern: &[char], mut p: usize, c: char) -> Option<usize> {
    let inverted = pattern.get(p) == Some(&'^');
    p += usize::from(inverted);
    let (mut seen, mut prior) = (false, None);
    if pattern.get(p) == Some(&']') {
        seen = c == ']';
        p += 1;
    }
    loop {
        let this = *pattern.get(p)?;
        p += 1;
        match (this, prior, pattern.get(p)) {
            (']', ..) => return (seen != inverted).then_some(p),
            ('-', Some(low), Some(&high)) if high != ']' => {
                seen |= (low..=high).contains(&c);
                prior = None;
                p += 1;
            }
            _ => {
                seen |= this == c;
                prior = Some(this);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_split_as_fossil_splits_them() {
        let list = Ignore::parse(" *.o,,*.a\n\"a, b\" 'it\"s'x\t[,] ");
        let texts: Vec<String> = list.0.iter().map(|p| p.iter().collect()).collect();
        assert_eq!(texts, ["*.o", "*.a", "a, b", "it\"s", "x", "[", "]"]);
        assert_eq!(Ignore::parse(" ,\n"), Ignore::default());
        assert_eq!(Ignore::parse("'open"), Ignore::parse("open"));
    }

    #[test]
    fn a_star_matches_slashes_and_a_pattern_the_whole_path() {
        let ignore = Ignore::parse("*.o build/*");
        assert!(ignore.matches("a/b/c.o") && ignore.matches("build/x/y") && ignore.matches_folder("build"));
        assert!(!ignore.matches("a.obj") && !ignore.matches("x/build/y") && !ignore.matches("build"));
    }

    #[test]
    fn p17_case_and_sets_are_exact() {
        let ignore = Ignore::parse("[]x] [^a-c]z [a-]q ?.TXT [open");
        for path in ["]", "x", "dz", "-q", "aq", "é.TXT"] {
            assert!(ignore.matches(path), "{path}");
        }
        for path in ["az", "bq", "a.txt", "ab.TXT", "[open", "open"] {
            assert!(!ignore.matches(path), "{path}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        assert!(
            !Ignore::parse(&"*a".repeat(60)).matches(&"a".repeat(59).repeat(20).replace("aaa", "aab")[..50])
        );
        assert!(!Ignore::parse("a*a*a*a*a*a*a*a*a*a*a*a*b").matches(&"a".repeat(2000)));
    }

    proptest! {
        #[test]
        fn patterns_mean_what_sqlite_says(pattern in "[ab*?\\[\\]^-]{1,9}", text in "[abé\\]^-]{0,7}") {
            let db = rusqlite::Connection::open_in_memory().unwrap();
            let theirs: bool = db.query_row("SELECT ?2 GLOB ?1", [&pattern, &text], |row| row.get(0)).unwrap();
            let chars = |s: &str| s.chars().collect::<Vec<char>>();
            prop_assert_eq!(glob(&chars(&pattern), &chars(&text)), theirs);
        }
    }
}
