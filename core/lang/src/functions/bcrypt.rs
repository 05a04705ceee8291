//! `bcrypt`

use ::bcrypt::{Version, hash_with_salt};

use super::prelude::*;

/// Bytes of the text that the method looks at.
const LONGEST: usize = 72;
/// Rounds are doubled by each: so many take about a minute.
const MOST: i64 = 20;
const USUAL: u32 = 10;

pub(super) const FUNCTION: Function = Function {
    name: "bcrypt",
    doc: "The hash of a password by the method bcrypt. It is known after apply only, as it is another one each time.",
    parameters: &[Parameter::string("str"), Parameter::number("cost")],
    optional: 1,
    body: Some(|a| {
        if a.text(0).len() > LONGEST {
            // Not of the argument: an error of that shows how it begins.
            return Err(FunctionError::new(format!("the password has more than {LONGEST} bytes, and bcrypt looks at no more")));
        }
        if a.len() > 1 && a.whole(1)? > MOST {
            return Err(FunctionError::at(1, format!("{} is too much: more than {MOST} would take minutes", a.quote(1))));
        }
        Ok(a.unknown())
    }),
    #[cfg(test)]
    rows: &[
        ("bcrypt(\"secret\")", "UNKNOWN string"),
        ("bcrypt(\"secret\",5)", "UNKNOWN string"),
        ("bcrypt(\"secret\",21)", "ERROR 21 is too much"),
        ("bcrypt(\"secret\",5.5)", "ERROR a whole number is required"),
        ("bcrypt(join(\"\",range(100)))", "ERROR the password has more than 72 bytes"),
    ],
    ..Function::BASE
};

/// The hash that the arguments of a call give with this salt; nothing while they are not known.
pub(crate) fn hash(arguments: &[Value], salt: [u8; 16]) -> Option<String> {
    let text = convert(arguments.first()?, &Type::String).ok()?;
    let cost = arguments.get(1).and_then(|cost| convert(cost, &Type::Number).ok()?.as_number()?.as_i64());
    // What is less than the least there is, is the usual one.
    let cost = cost.and_then(|cost| u32::try_from(cost).ok()).filter(|cost| *cost >= 4).unwrap_or(USUAL);
    let hash = hash_with_salt(text.as_str()?, cost, salt).ok()?;
    Some(hash.format_for_version(Version::TwoA))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_holds_for_its_text_alone() {
        let made = hash(&["secret".into(), 4_i64.into()], [7; 16]).unwrap();
        assert!(made.starts_with("$2a$04$") && made.len() == 60, "{made}");
        assert!(::bcrypt::verify("secret", &made).unwrap() && !::bcrypt::verify("Secret", &made).unwrap());
        assert_eq!(hash(&["secret".into(), 4_i64.into()], [7; 16]), Some(made), "an apply makes the same each time it asks");
        assert!(hash(&["secret".into(), 0_i64.into()], [7; 16]).unwrap().starts_with("$2a$10$"));
        assert_eq!(hash(&[Value::unknown(Type::String)], [7; 16]), None);
    }
}
