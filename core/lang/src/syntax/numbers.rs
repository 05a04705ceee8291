//! Numbers as written. They are read from the text: the parser's own floats lose digits.

use karmaform_model::Number;

/// How many bytes of the number at the text's start.
pub(super) fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.get(from..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if digits(end + 1 + sign) > 0 {
            end += 1 + sign + digits(end + 1 + sign);
        }
    }
    end
}

/// The number at the text's start, which may have a sign; `None` if it has too many digits.
pub(super) fn number(text: &str) -> Option<Number> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest.trim_start()),
        None => ("", text),
    };
    // A comment may stand between the sign and the digits.
    let digits = digits.strip_prefix("/*").map_or(Some(digits), |comment| comment.split_once("*/").map(|(_, digits)| digits))?.trim_start();
    format!("{sign}{}", &digits[..number_length(digits)]).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact() {
        for (text, expected) in [
            ("0.1", Some("0.1")),
            ("- 5", Some("-5")),
            ("-/* 3 */ 5", Some("-5")),
            ("-/*/ 3 */5", Some("-5")),
            ("1e400 ", Some(&*format!("1{}", "0".repeat(400)))),
            ("9007199254740993", Some("9007199254740993")),
            ("1e99999999", None),
        ] {
            assert_eq!(number(text).map(|n| n.to_string()).as_deref(), expected, "{text}");
        }
    }
}
