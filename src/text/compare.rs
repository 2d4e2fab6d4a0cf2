//! What changed between two texts, line by line, in bounded time.
//!
//! Where too much changed, the texts are cut at lines that each of them has once, in the same order, and the parts
//! between are compared as far as the effort goes. A part beyond it counts as replaced whole.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::Hash;
use std::ops::Range;

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, Token, UnifiedDiffConfig};

/// How much work comparisons may still take. One comparison takes at most as much as the pairs of its lines that may
/// belong together; of these some hundred million take a second.
#[derive(Debug)]
pub struct Effort(u64);

impl Default for Effort {
    fn default() -> Self {
        Self(100_000_000)
    }
}

impl Effort {
    /// Takes so much of what is left, if there is so much.
    fn spend(&mut self, pairs: u64) -> bool {
        let left = self.0.checked_sub(pairs);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// Two texts, and which of their lines belong together.
pub struct Comparison<'a> {
    input: InternedInput<&'a str>,
    diff: Diff,
    complete: bool,
}

impl<'a> Comparison<'a> {
    /// Compares two texts.
    #[must_use]
    pub fn of(before: &'a str, after: &'a str, effort: &mut Effort) -> Self {
        let input = InternedInput::new(before, after);
        if effort.spend(pairs_max(&input.before, &input.after)) {
            let mut diff = Diff::compute(Algorithm::Histogram, &input);
            diff.postprocess_lines(&input);
            return Self { input, diff, complete: true };
        }
        let mut parts =
            Parts { before: &input.before, after: &input.after, pairs: Vec::new(), effort, complete: true };
        parts.cut(0..input.before.len(), 0..input.after.len());
        let (diff, complete) = (parts.diff(), parts.complete);
        Self { input, diff, complete }
    }

    /// Whether all was compared. If not, a part counts as replaced whole.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// How many lines only the second text has.
    #[must_use]
    pub fn added(&self) -> u32 {
        self.diff.count_additions()
    }

    /// How many lines only the first text has.
    #[must_use]
    pub fn removed(&self) -> u32 {
        self.diff.count_removals()
    }

    /// Writes the differences as a unified diff, without a head.
    pub fn write(&self, to: &mut String) {
        let printer = BasicLineDiffPrinter(&self.input.interner);
        let unified = self.diff.unified_diff(&printer, UnifiedDiffConfig::default(), &self.input);
        let _ = write!(to, "{unified}");
        if !to.is_empty() && !to.ends_with('\n') {
            to.push('\n');
        }
    }
}

/// Returns which lines of `before` were changed, and the lines of `after` that stand in their place. Beyond the effort, a
/// part counts as replaced whole.
#[must_use]
pub fn changes(before: &[&[u8]], after: &[&[u8]], effort: &mut Effort) -> Vec<(Range<usize>, Range<usize>)> {
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let diff = if effort.spend(pairs_max(&input.before, &input.after)) {
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_no_heuristic(&input);
        diff
    } else {
        let (before, after) = (&input.before, &input.after);
        let mut parts = Parts { before, after, pairs: Vec::new(), effort, complete: true };
        parts.cut(0..before.len(), 0..after.len());
        parts.diff()
    };
    let range = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| (range(hunk.before), range(hunk.after))).collect()
}

/// How many pairs of lines may have to be looked at: those that the other side has too, times each other. Equal ends
/// cost nothing.
fn pairs_max<T: Hash + Eq>(before: &[T], after: &[T]) -> u64 {
    let start = equal(before.iter(), after.iter());
    let (before, after) = (&before[start..], &after[start..]);
    let end = equal(before.iter().rev(), after.iter().rev());
    let (before, after) = (&before[..before.len() - end], &after[..after.len() - end]);
    let counted = |lines: &[T], others: &[T]| {
        let others: std::collections::HashSet<&T> = others.iter().collect();
        lines.iter().filter(|line| others.contains(line)).count() as u64
    };
    counted(before, after) * counted(after, before)
}

/// How many items both have in common from their start.
fn equal<T: Eq>(a: impl Iterator<Item = T>, b: impl Iterator<Item = T>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// A comparison part by part.
struct Parts<'a, 'e> {
    before: &'a [Token],
    after: &'a [Token],
    /// The lines that belong together, in their order.
    pairs: Vec<(usize, usize)>,
    effort: &'e mut Effort,
    complete: bool,
}

impl Parts<'_, '_> {
    /// Compares what lies between the lines that stand once in each text.
    fn cut(&mut self, before: Range<usize>, after: Range<usize>) {
        let (mut a, mut b) = (before.start, after.start);
        for (at_a, at_b) in in_order(&once_each(self.before, self.after)) {
            self.compare(a..at_a, b..at_b);
            self.pairs.push((at_a, at_b));
            (a, b) = (at_a + 1, at_b + 1);
        }
        self.compare(a..before.end, b..after.end);
    }

    fn compare(&mut self, before: Range<usize>, after: Range<usize>) {
        let (old, new) = (&self.before[before.clone()], &self.after[after.clone()]);
        let start = equal(old.iter(), new.iter());
        let end = equal(old[start..].iter().rev(), new[start..].iter().rev());
        self.pairs.extend((0..start).map(|n| (before.start + n, after.start + n)));
        let (old, new) = (&old[start..old.len() - end], &new[start..new.len() - end]);
        let pairs = pairs_max(old, new);
        if pairs > 0 && self.effort.spend(pairs) {
            let mut part = InternedInput::default();
            part.update_before(old.iter().map(|line| line.0));
            part.update_after(new.iter().map(|line| line.0));
            let diff = Diff::compute(Algorithm::Histogram, &part);
            let kept = |count: usize, goes: &dyn Fn(u32) -> bool| {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                (0..count).filter(|&n| !goes(n)).map(|n| n as usize).collect::<Vec<_>>()
            };
            let kept_old = kept(old.len(), &|n| diff.is_removed(n));
            let kept_new = kept(new.len(), &|n| diff.is_added(n));
            let (first_old, first_new) = (before.start + start, after.start + start);
            self.pairs.extend(kept_old.iter().zip(&kept_new).map(|(a, b)| (first_old + a, first_new + b)));
        } else {
            self.complete &= pairs == 0;
        }
        self.pairs.extend((0..end).rev().map(|n| (before.end - 1 - n, after.end - 1 - n)));
    }

    /// The diff in which exactly these pairs belong together: each line gets a token of its own, and each pair one.
    fn diff(&self) -> Diff {
        let numbers = |count: usize, offset: usize| -> Vec<Token> {
            (offset..offset + count).map(|n| Token(u32::try_from(n).unwrap_or(u32::MAX))).collect()
        };
        let before = numbers(self.before.len(), 0);
        let mut after = numbers(self.after.len(), before.len());
        for &(a, b) in &self.pairs {
            after[b] = before[a];
        }
        let count = u32::try_from(before.len() + after.len()).unwrap_or(u32::MAX);
        let mut diff = Diff::default();
        diff.compute_with(Algorithm::Myers, &before, &after, count);
        diff
    }
}

/// The places of the lines that stand exactly once in each text, in the order of the first.
fn once_each(before: &[Token], after: &[Token]) -> Vec<(usize, usize)> {
    let once = |lines: &[Token]| {
        let mut places: HashMap<Token, Option<usize>> = HashMap::new();
        for (at, line) in lines.iter().enumerate() {
            places.entry(*line).and_modify(|place| *place = None).or_insert(Some(at));
        }
        places
    };
    let (before_once, after_once) = (once(before), once(after));
    let mut both: Vec<_> =
        before_once.iter().filter_map(|(line, at)| Some(((*at)?, (*after_once.get(line)?)?))).collect();
    both.sort_unstable();
    both
}

/// The longest run of pairs whose second places rise too.
fn in_order(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the last pair of the run that ends lowest; and for each pair the one before it.
    let (mut ends, mut previous): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (number, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < pair.1);
        previous.push(length.checked_sub(1).map(|length| ends[length]));
        ends.truncate(ends.len().max(length));
        if length == ends.len() { ends.push(number) } else { ends[length] = number }
    }
    let mut run: Vec<_> =
        std::iter::successors(ends.last().copied(), |&at| previous[at]).map(|at| pairs[at]).collect();
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
        (0..count).map(|n| line(n) + "\n").collect()
    }

    /// The second text, made from the first and the diff.
    fn applied(before: &str, compared: &Comparison<'_>) -> String {
        let mut diff = String::new();
        compared.write(&mut diff);
        let mut old = before.split_inclusive('\n');
        let (mut new, mut at) = (String::new(), 1);
        for line in diff.lines() {
            if let Some(head) = line.strip_prefix("@@ -") {
                let start: usize = head.split(',').next().unwrap().parse().unwrap();
                while at < start {
                    new += old.next().unwrap();
                    at += 1;
                }
                continue;
            }
            let (sign, text) = line.split_at(1);
            if sign != "+" {
                assert_eq!(old.next().unwrap().trim_end_matches('\n'), text);
                at += 1;
            }
            if sign != "-" {
                new += text;
                new.push('\n');
            }
        }
        new + &old.collect::<String>()
    }

    #[test]
    fn v14_texts_without_an_end_of_work_are_compared_in_bounded_work_and_it_is_said() {
        let mixed = |seed: usize| move |n: usize| format!("{}", (n * seed + n / 7 * seed) % 11);
        let (before, after) = (lines(60_000, mixed(7)), lines(60_000, mixed(5)));
        let compared = Comparison::of(&before, &after, &mut Effort::default());
        assert!(!compared.is_complete());
        assert_eq!(applied(&before, &compared), after);
    }

    #[test]
    fn every_line_of_a_large_text_changed_is_compared_whole() {
        let (before, after) = (lines(60_000, |n| format!("a{n}")), lines(60_000, |n| format!("b{n}")));
        let compared = Comparison::of(&before, &after, &mut Effort::default());
        assert!(compared.is_complete());
        assert_eq!((compared.added(), compared.removed()), (60_000, 60_000));
    }

    #[test]
    fn one_line_changed_in_a_large_text_is_found_among_many_that_repeat() {
        let line = |n: usize| if n.is_multiple_of(2) { "}".to_owned() } else { format!("x{n}") };
        let before = lines(100_000, line);
        let after = lines(100_000, |n| if n == 500 || n == 99_001 { "new".to_owned() } else { line(n) });
        let compared = Comparison::of(&before, &after, &mut Effort::default());
        assert!(compared.is_complete());
        assert_eq!((compared.added(), compared.removed()), (2, 2));
        assert_eq!(applied(&before, &compared), after);
    }

    #[test]
    fn parts_give_a_diff_that_makes_the_second_text_of_the_first() {
        let mut state = 12345_u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for round in 0..300 {
            let kinds = 1 + round % 40;
            let mut text = || {
                let words: Vec<_> = (0..random(60)).map(|_| random(kinds).to_string()).collect();
                words.iter().flat_map(|word| [word, "\n"]).collect::<String>()
            };
            let (before, after) = (text(), text());
            for effort in [0, 10, 300] {
                let compared = Comparison::of(&before, &after, &mut Effort(effort));
                assert_eq!(applied(&before, &compared), after, "{before:?} {after:?}");
            }
        }
    }
}
