//! What a server wants that says "unauthorized": the header `WWW-Authenticate`. Pure.

/// One way to log in: `Bearer realm="https://auth.docker.io/token",service="registry.docker.io"`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Of the header; of several ways in one header the first.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, mut rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        let mut parameters = Vec::new();
        while let Some((name, value)) = rest.split_once('=') {
            let name = name.trim_matches([' ', ',']);
            // a blank: here begins the next way
            if name.contains(' ') {
                break;
            }
            let (value, after) = match value.strip_prefix('"') {
                Some(quoted) => unquoted(quoted)?,
                None => value.split_once(',').map_or((value.trim().to_owned(), ""), |(value, after)| (value.trim().to_owned(), after)),
            };
            parameters.push((name.to_ascii_lowercase(), value));
            rest = after;
        }
        (!scheme.is_empty()).then(|| Self { scheme: scheme.to_ascii_lowercase(), parameters })
    }

    /// Whether it is this one, in small letters.
    pub(super) fn is(&self, scheme: &str) -> bool {
        self.scheme == scheme
    }

    /// A parameter that is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, v)| n == name && !v.is_empty()).map(|(_, v)| v.as_str())
    }
}

/// The text up to the closing quote, and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let check = |header: &str, scheme: &str, parameters: &[(&str, &str)]| {
            let found = Challenge::parse(header).unwrap();
            assert!(found.is(scheme), "{found:?}");
            let found: Vec<_> = found.parameters.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            assert_eq!(found, parameters, "{header}");
        };
        check(
            r#"Bearer realm="https://a.io/token",service="r.io",scope="repository:a/b:pull,push""#,
            "bearer",
            &[("realm", "https://a.io/token"), ("service", "r.io"), ("scope", "repository:a/b:pull,push")],
        );
        check(r#"bearer Realm="a\"b" , x=y, z="""#, "bearer", &[("realm", "a\"b"), ("x", "y"), ("z", "")]);
        check(r#"Basic realm="a b", Bearer realm="c""#, "basic", &[("realm", "a b")]);
        check("Negotiate", "negotiate", &[]);
        assert_eq!(Challenge::parse(r#"Bearer realm="open"#), None);
        assert_eq!(Challenge::parse(""), None);
    }
}
