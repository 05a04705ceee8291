//! What the block `authorities` may hold.

use karmaform_model::{Attribute, Block, Diagnostic, Diagnostics, Nesting, Object, Schema, Type, Value};

use super::super::arguments::not_known;

/// More at once nobody needs: one that goes, one that comes, and one more if the key of that got lost on the way.
const MOST: usize = 4;
/// The highest number.
const HIGHEST: i64 = 999;

/// Which CAs a cluster has. They have numbers; the cluster begins with 1, and each number is a CA for clients and one for members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authorities {
    /// Those that are trusted, in rising order, each once; never empty.
    pub(crate) trusted: Vec<i64>,
    /// The one of them that signs.
    pub(crate) signs_with: i64,
}

/// The block.
pub(crate) fn block() -> Block {
    let attributes = vec![
        Attribute::required(
            "trusted",
            Type::list(Type::Number),
            "The CAs that members and clients trust, by number. A cluster begins with 1; a number that is not there yet makes a new CA.",
        ),
        Attribute::optional(
            "signs_with",
            Type::Number,
            "The one of them that certificates come from; the lowest unless written. Only one that was trusted at the last apply.",
        ),
    ];
    let doc = "Other CAs in place of the first ones, in three applies: one more in `trusted`; then `signs_with` is that one; then the old one is \
               out of `trusted`. Members are restarted one at a time at the first and at the last of these; nobody is locked out.";
    Block { name: "authorities", nesting: Nesting::Single, schema: Schema::new(doc, attributes) }
}

impl Default for Authorities {
    fn default() -> Self {
        Self { trusted: vec![1], signs_with: 1 }
    }
}

impl Authorities {
    /// Reads and checks the block of a cluster's arguments. What is wrong goes to `found`.
    pub(crate) fn read(object: &Object, found: &mut Diagnostics) -> Self {
        let Some(block) = object.get("authorities").filter(|v| !v.is_null()) else { return Self::default() };
        let Some(block) = block.as_entries() else {
            found.push(not_known("authorities"));
            return Self::default();
        };
        let given = |name: &str| block.get(name).filter(|v| !v.is_null());
        if ["trusted", "signs_with"].into_iter().any(|name| given(name).is_some_and(|v| !v.is_wholly_known())) {
            found.push(not_known("authorities"));
            return Self::default();
        }
        let mut trusted: Vec<i64> = given("trusted").and_then(Value::as_items).into_iter().flatten().filter_map(number).collect();
        let count = given("trusted").and_then(Value::as_items).map_or(0, <[Value]>::len);
        trusted.sort_unstable();
        trusted.dedup();
        if trusted.is_empty() || trusted.len() != count || count > MOST {
            found.push(
                Diagnostic::error(
                    "Bad `trusted`",
                    format!("It is a list of one to {MOST} different whole numbers from 1 to {HIGHEST}: the CAs that are trusted."),
                )
                .with_hint("A cluster without the block trusts [1]. For another CA beside that write [1, 2]."),
            );
            return Self::default();
        }
        let signs_with = given("signs_with").map_or(trusted.first().copied(), number);
        match signs_with.filter(|signs| trusted.contains(signs)) {
            Some(signs_with) => Self { trusted, signs_with },
            None => {
                found.push(
                    Diagnostic::error("The CA that signs is not trusted", "`signs_with` must be one of the numbers in `trusted`.")
                        .with_hint("Write both numbers into `trusted`; the old one is taken out when nothing is signed with it any more."),
                );
                Self::default()
            }
        }
    }

    /// True where only the first CA is trusted.
    pub(crate) fn trusts_the_first_alone(&self) -> bool {
        self.trusted == [1]
    }

    /// The trusted ones as a text: `1,2`.
    pub(crate) fn text(&self) -> String {
        self.trusted.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// The same of what the state has: `None` if that can't be read.
    pub(super) fn recorded(before: &Object) -> Option<Self> {
        let mut found = Diagnostics::new();
        let read = Self::read(before, &mut found);
        found.is_empty().then_some(read)
    }
}

fn number(value: &Value) -> Option<i64> {
    value.as_i64().filter(|n| (1..=HIGHEST).contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(trusted: &[i64], signs_with: Option<i64>) -> Result<Authorities, String> {
        let list = Value::list(Type::Number, trusted.iter().map(|n| (*n).into()).collect());
        let signs_with = signs_with.map_or_else(|| Value::null(Type::Number), Value::from);
        let block = Value::object([("trusted", list), ("signs_with", signs_with)]);
        let mut found = Diagnostics::new();
        let read = Authorities::read(&Object::from([("authorities".to_owned(), block)]), &mut found);
        found.iter().next().map_or(Ok(read), |d| Err(d.summary.clone()))
    }

    #[test]
    fn numbers_are_sorted_and_the_lowest_signs() {
        assert_eq!(read(&[2, 1], None), Ok(Authorities { trusted: vec![1, 2], signs_with: 1 }));
        assert_eq!(read(&[1, 2], Some(2)), Ok(Authorities { trusted: vec![1, 2], signs_with: 2 }));
        assert_eq!(read(&[2], None), Ok(Authorities { trusted: vec![2], signs_with: 2 }));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for trusted in [&[][..], &[1, 1], &[0], &[1000], &[1, 2, 3, 4, 5]] {
            assert_eq!(read(trusted, None), Err("Bad `trusted`".to_owned()), "{trusted:?}");
        }
        assert_eq!(read(&[1], Some(2)), Err("The CA that signs is not trusted".to_owned()));
    }
}
