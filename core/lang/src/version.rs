//! Version constraints: `">= 0.1, < 2"`.

use std::cmp::Ordering;

/// The version of Terraform whose language and forms these are.
pub const TERRAFORM: &str = "1.11.4";

/// Whether `version` satisfies all constraints.
///
/// # Errors
/// What is wrong with the constraint's text.
pub(crate) fn satisfies(version: &str, constraints: &str) -> Result<bool, String> {
    let version = Version::parse(version).ok_or_else(|| format!("\"{version}\" is not a version"))?;
    let mut all = true;
    for constraint in constraints.split(',') {
        all &= one(&version, constraint.trim())?;
    }
    Ok(all)
}

struct Version {
    numbers: Vec<u64>,
    pre: Option<String>,
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v').split('+').next()?;
        let (numbers, pre) = text.split_once('-').map_or((text, None), |(n, p)| (n, Some(p.to_owned())));
        let numbers: Vec<u64> = numbers.split('.').map(|n| n.parse().ok()).collect::<Option<_>>()?;
        (numbers.len() <= 3).then_some(Self { numbers, pre })
    }

    fn number(&self, i: usize) -> u64 {
        self.numbers.get(i).copied().unwrap_or(0)
    }

    fn compare(&self, other: &Self) -> Ordering {
        let numbers = (0..3).map(|i| self.number(i).cmp(&other.number(i))).find(|o| o.is_ne());
        numbers.unwrap_or_else(|| match (&self.pre, &other.pre) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => a.cmp(b),
        })
    }
}

fn one(version: &Version, constraint: &str) -> Result<bool, String> {
    let end = constraint.find(|c: char| !matches!(c, '=' | '!' | '<' | '>' | '~')).unwrap_or(constraint.len());
    let (operator, text) = constraint.split_at(end);
    let bound = Version::parse(text).ok_or_else(|| format!("\"{constraint}\" is not a version constraint"))?;
    let order = version.compare(&bound);
    // As everywhere: a pre-release only satisfies what names it.
    let released = version.pre.is_none() || bound.pre.is_some();
    Ok(match operator {
        "" | "=" => order.is_eq(),
        "!=" => order.is_ne(),
        ">" => order.is_gt() && released,
        ">=" => order.is_ge() && released,
        "<" => order.is_lt() && released,
        "<=" => order.is_le() && released,
        "~>" => {
            let fixed = bound.numbers.len().saturating_sub(1).max(1);
            order.is_ge() && released && (0..fixed).all(|i| version.number(i) == bound.number(i))
        }
        other => return Err(format!("there is no operator \"{other}\"")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints() {
        for (version, constraint, expected) in [
            ("0.1.0", ">= 0.1", Ok(true)),
            ("0.1.0", ">= 0.1, < 0.1.0", Ok(false)),
            ("1.2.3", "~> 1.2", Ok(true)),
            ("1.3.0", "~> 1.2", Ok(true)),
            ("2.0.0", "~> 1.2", Ok(false)),
            ("1.3.0", "~> 1.2.0", Ok(false)),
            ("1.0.0-rc1", ">= 1.0.0", Ok(false)),
            ("1.0.0-rc1", "1.0.0-rc1", Ok(true)),
            ("1.0.0", "!= 1.0.0", Ok(false)),
            ("1.0.0", "=> 1", Err(())),
            ("1.0.0", "one", Err(())),
            ("1.0.0", "", Err(())),
        ] {
            assert_eq!(satisfies(version, constraint).map_err(drop), expected, "{version} {constraint}");
        }
    }
}
