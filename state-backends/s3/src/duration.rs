//! Lengths of time as Terraform's arguments have them: `1h30m`.

/// The whole seconds of a length like `1h30m` or `900s`; `None` if it is none.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let (mut total, mut digits) = (0u64, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit = match c {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        total = total.checked_add(digits.parse::<u64>().ok()?.checked_mul(unit)?)?;
        digits.clear();
    }
    (digits.is_empty() && !text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    #[test]
    fn lengths_are_read() {
        for (text, expected) in [
            ("1h30m", Some(5400)),
            ("900s", Some(900)),
            ("", None),
            ("5", None),
            ("h", None),
            ("1d", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(super::seconds(text), expected, "{text}");
        }
    }
}
