//! Types of the language, as written in `type = ...` and in schemas.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::Value;

/// A type, or a type constraint where [`Type::Any`] stands for "whatever it is".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Type {
    /// `any`: not decided yet.
    Any,
    /// `bool`
    Bool,
    /// `number`
    Number,
    /// `string`
    String,
    /// `list(T)`
    List(Box<Type>),
    /// `set(T)`
    Set(Box<Type>),
    /// `map(T)`
    Map(Box<Type>),
    /// `tuple([T, ...])`
    Tuple(Vec<Type>),
    /// `object({ name = T, ... })`
    Object(BTreeMap<String, ObjectAttribute>),
}

/// One attribute of an object type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectAttribute {
    /// Its type.
    pub ty: Type,
    /// Written as `optional(T)`: a missing one becomes null or the default.
    pub optional: bool,
    /// The second argument of `optional`.
    pub default: Option<Box<Value>>,
}

impl ObjectAttribute {
    /// A required attribute.
    pub fn required(ty: Type) -> Self {
        Self { ty, optional: false, default: None }
    }

    /// An optional attribute without a default.
    pub fn optional(ty: Type) -> Self {
        Self { ty, optional: true, default: None }
    }
}

impl Type {
    /// `list(element)`
    pub fn list(element: Self) -> Self {
        Self::List(Box::new(element))
    }

    /// `set(element)`
    pub fn set(element: Self) -> Self {
        Self::Set(Box::new(element))
    }

    /// `map(element)`
    pub fn map(element: Self) -> Self {
        Self::Map(Box::new(element))
    }

    /// An object whose attributes are all required.
    pub fn object<const N: usize>(attributes: [(&str, Self); N]) -> Self {
        Self::Object(attributes.into_iter().map(|(n, t)| (n.to_owned(), ObjectAttribute::required(t))).collect())
    }

    /// `string`, `number` or `bool`.
    pub fn is_primitive(&self) -> bool {
        matches!(self, Self::Bool | Self::Number | Self::String)
    }

    /// True if `any` stands somewhere in it.
    pub fn has_any(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Bool | Self::Number | Self::String => false,
            Self::List(t) | Self::Set(t) | Self::Map(t) => t.has_any(),
            Self::Tuple(ts) => ts.iter().any(Self::has_any),
            Self::Object(a) => a.values().any(|a| a.ty.has_any()),
        }
    }

    /// The one-word name for messages: `string`, `list`, `object`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Any => "dynamic",
            Self::Bool => "bool",
            Self::Number => "number",
            Self::String => "string",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Map(_) => "map",
            Self::Tuple(_) => "tuple",
            Self::Object(_) => "object",
        }
    }

    /// Terraform's JSON encoding of types, as in the `type` of a state's outputs.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Any | Self::Bool | Self::Number | Self::String => json!(self.word()),
            Self::List(t) | Self::Set(t) | Self::Map(t) => json!([self.word(), t.to_json()]),
            Self::Tuple(ts) => json!(["tuple", ts.iter().map(Self::to_json).collect::<Vec<_>>()]),
            Self::Object(a) => {
                let types: serde_json::Map<_, _> = a.iter().map(|(n, a)| (n.clone(), a.ty.to_json())).collect();
                json!(["object", types])
            }
        }
    }

    /// Reads [`Type::to_json`] back; `None` if it is no type.
    pub fn from_json(json: &Json) -> Option<Self> {
        match json {
            Json::String(word) => Some(match word.as_str() {
                "dynamic" => Self::Any,
                "bool" => Self::Bool,
                "number" => Self::Number,
                "string" => Self::String,
                _ => return None,
            }),
            Json::Array(parts) => {
                let inner = parts.get(1)?;
                match parts.first()?.as_str()? {
                    "list" => Self::from_json(inner).map(Self::list),
                    "set" => Self::from_json(inner).map(Self::set),
                    "map" => Self::from_json(inner).map(Self::map),
                    "tuple" => inner.as_array()?.iter().map(Self::from_json).collect::<Option<_>>().map(Self::Tuple),
                    "object" => inner
                        .as_object()?
                        .iter()
                        .map(|(n, t)| Some((n.clone(), ObjectAttribute::required(Self::from_json(t)?))))
                        .collect::<Option<_>>()
                        .map(Self::Object),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    /// As a user writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Bool | Self::Number | Self::String => f.write_str(self.word()),
            Self::List(t) | Self::Set(t) | Self::Map(t) => write!(f, "{}({t})", self.word()),
            Self::Tuple(ts) => {
                f.write_str("tuple([")?;
                for (i, t) in ts.iter().enumerate() {
                    write!(f, "{}{t}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("])")
            }
            Self::Object(attributes) => {
                f.write_str("object({")?;
                for (i, (name, a)) in attributes.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    if a.optional {
                        write!(f, "{comma}{name}=optional({})", a.ty)?;
                    } else {
                        write!(f, "{comma}{name}={}", a.ty)?;
                    }
                }
                f.write_str("})")
            }
        }
    }
}
