//! Words for callers without what does not hold where they call.

/// The words without the parts that are `unsaid`. A part is a sentence, or what stands between two semicolons of one.
pub(super) fn without(words: &str, unsaid: impl Fn(&str) -> bool) -> String {
    let lines = words.lines().map(|line| {
        let kept = sentences(line).filter_map(|sentence| kept(sentence, &unsaid));
        kept.collect::<Vec<_>>().join(" ")
    });
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The sentences of a line, each with its end.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let ends = rest.match_indices(". ").chain(rest.match_indices("? ")).map(|(at, _)| at + 1).min();
        let (sentence, after) = rest.split_at(ends.unwrap_or(rest.len()));
        rest = after.trim_start();
        (!sentence.is_empty()).then_some(sentence)
    })
}

/// What is said of a sentence. It begins and ends as a sentence does.
fn kept(sentence: &str, unsaid: impl Fn(&str) -> bool) -> Option<String> {
    if !unsaid(sentence) {
        return Some(sentence.to_owned());
    }
    let parts: Vec<&str> = sentence.split("; ").filter(|part| !unsaid(part)).collect();
    let said = parts.join("; ");
    let first = said.chars().next()?;
    let said: String = first.to_uppercase().chain(said.chars().skip(1)).collect();
    Some(if said.ends_with(['.', '?']) { said } else { said + "." })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_parts_of_them_are_left_out() {
        for (words, left) in [
            ("Did you mean `a.b`? OUT looks in all.", "Did you mean `a.b`?"),
            ("Give it; OUT looks in all.", "Give it."),
            ("OUT looks; give `a` and b.", "Give `a` and b."),
            ("Call OUT, then save.", ""),
            ("One. Two, OUT. Three.\nNeeds: x.", "One. Three.\nNeeds: x."),
            ("Nothing; is out.", "Nothing; is out."),
        ] {
            assert_eq!(without(words, |part| part.contains("OUT")), left, "{words}");
        }
    }
}
