//! The little of protobuf and of gRPC's frames that a fake member speaks.

use hyper::body::Bytes;

/// A field with a number, a flag or an id.
pub(super) fn number(tag: u8, value: u64) -> Vec<u8> {
    let mut field = vec![tag << 3];
    varint(value, &mut field);
    field
}

/// A field with a text, with bytes, or with another message.
pub(super) fn bytes(tag: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut field = vec![tag << 3 | 2];
    varint(content.len() as u64, &mut field);
    field.extend_from_slice(content);
    field
}

fn varint(mut value: u64, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    into.push(u8::try_from(value).unwrap());
}

/// The texts of the first fields of a message: a key, and where its range ends. They are short in these tests.
pub(super) fn texts(message: &[u8]) -> (String, Option<String>) {
    let text = |message: &[u8], tag: u8| -> Option<String> {
        let length = usize::from(*message.strip_prefix(&[tag << 3 | 2])?.first()?);
        assert!(length < 0x80, "a longer key than is read here");
        Some(String::from_utf8_lossy(&message[2..2 + length]).into_owned())
    };
    let first = text(message, 1).unwrap_or_default();
    let rest = if first.is_empty() { message } else { &message[2 + first.len()..] };
    (first, text(rest, 2))
}

/// Messages as they go over the wire.
pub(super) fn framed(messages: &[Vec<u8>]) -> Bytes {
    let frame = |message: &Vec<u8>| {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0], &length[..], message].concat()
    };
    messages.iter().flat_map(frame).collect()
}
