//! Yes and no in a setting's value, as Fossil reads them.

/// Whether the value means yes.
pub(crate) fn means_yes(value: &str) -> bool {
    is_one_of(value, ["1", "on", "yes", "true"])
}

/// Whether the value means no.
pub(crate) fn means_no(value: &str) -> bool {
    is_one_of(value, ["0", "off", "no", "false"])
}

fn is_one_of(value: &str, words: [&str; 4]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(value.trim()))
}
