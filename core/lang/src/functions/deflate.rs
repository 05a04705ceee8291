//! DEFLATE (RFC 1951), byte for byte as `base64gzip` of Terraform makes it, so that a plan shows no change where there is none: no library keeps its
//! bytes from version to version (`docs/decisions/0009-base64gzip-makes-its-own-bytes.md`). Chains of places that begin with the same four bytes are
//! searched for the longest repetition, and one that begins a byte later is preferred where it is longer.

mod blocks;
mod codes;

use blocks::Writer;

/// How far back a repetition may be, and by how much what is looked at moves on.
const WINDOW: usize = 1 << 15;
/// Repetitions of fewer bytes are not looked for.
const SHORTEST: usize = 4;
const LONGEST: usize = 258;
/// One of so many bytes is good enough, and no better one is looked for.
const GOOD: usize = 128;
/// Behind one of so many bytes none that begins a byte later is looked for.
const LAZY: usize = 16;
/// How many places of a chain are tried.
const TRIES: usize = 128;
/// One of four bytes is only worth it within this distance.
const NEAR: usize = 4096;
const HASH_BITS: u32 = 17;
/// How many tokens a block has at most.
const BLOCK: usize = 1 << 14;

/// A byte as it is, or so many bytes from so far back.
#[derive(Clone, Copy)]
enum Token {
    Literal(u8),
    Repeat { length: usize, distance: usize },
}

/// The bytes, flushed once and closed.
pub(super) fn deflate(data: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    let mut search = Search { data, base: 0, heads: vec![0; 1 << HASH_BITS], before: vec![0; WINDOW] };
    let mut tokens = Vec::new();
    let mut end = data.len().min(2 * WINDOW);
    // Where the block began; nothing once the window has left it.
    let mut start = Some(0);
    let (mut at, mut length, mut distance, mut has_literal) = (0, SHORTEST - 1, 0, false);
    loop {
        if end - at < SHORTEST + LONGEST && end < data.len() {
            search.base += WINDOW;
            end = data.len().min(search.base + 2 * WINDOW);
            start = start.filter(|start| *start >= search.base);
            continue;
        }
        let ahead = end - at;
        if ahead == 0 {
            break;
        }
        let candidate = search.insert(at);
        let (last_length, last_distance) = (length, distance);
        length = SHORTEST - 1;
        let candidate = candidate.filter(|place| *place >= search.base && place + WINDOW >= at);
        if let Some(candidate) = candidate.filter(|_| ahead > last_length && last_length < LAZY)
            && let Some(found) = search.longest(at, candidate, ahead)
        {
            (length, distance) = found;
        }
        // What the tokens stand for ends here: one that waits to be compared with the next is not among them.
        let covered;
        if last_length >= SHORTEST && length <= last_length {
            tokens.push(Token::Repeat { length: last_length, distance: last_distance });
            let next = at + last_length - 1;
            for place in at + 1..next {
                search.insert(place);
            }
            (at, length, has_literal) = (next, SHORTEST - 1, false);
            covered = at;
        } else {
            if has_literal {
                tokens.push(Token::Literal(data[at - 1]));
            }
            covered = at;
            at += 1;
            has_literal = true;
        }
        if tokens.len() == BLOCK {
            writer.block(&tokens, start.map(|start| &data[start..covered]));
            tokens.clear();
            start = Some(covered);
        }
    }
    if has_literal {
        tokens.push(Token::Literal(data[at - 1]));
    }
    if !tokens.is_empty() {
        writer.block(&tokens, start.map(|start| &data[start..at]));
    }
    writer.finish()
}

/// Places by their first four bytes.
struct Search<'a> {
    data: &'a [u8],
    /// Where the window begins.
    base: usize,
    /// By hash the last place there, and by place the one before it with the same hash; each plus one, and zero for none.
    heads: Vec<u32>,
    before: Vec<u32>,
}

impl Search<'_> {
    /// Adds a place; gives the last one with the same hash.
    fn insert(&mut self, at: usize) -> Option<usize> {
        let bytes = self.data.get(at..at + SHORTEST).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())?;
        let hash = u32::from_be_bytes(bytes).wrapping_mul(0x1e35_a7bd) >> (32 - HASH_BITS);
        let last = std::mem::replace(&mut self.heads[hash as usize], u32::try_from(at + 1).unwrap_or(0));
        self.before[at % WINDOW] = last;
        (last as usize).checked_sub(1)
    }

    /// Length and distance of the longest repetition, of what is tried from a candidate on.
    fn longest(&self, at: usize, candidate: usize, ahead: usize) -> Option<(usize, usize)> {
        let data = self.data;
        let most = ahead.min(LONGEST);
        let (mut length, mut found, mut place) = (SHORTEST - 1, None, candidate);
        for _ in 0..TRIES {
            if data[place + length] == data[at + length] {
                let same = data[place..].iter().zip(&data[at..at + most]).take_while(|(a, b)| a == b).count();
                if same > length && (same > SHORTEST || at - place <= NEAR) {
                    length = same;
                    found = Some((length, at - place));
                    if length >= most.min(GOOD) {
                        break;
                    }
                }
            }
            match (self.before[place % WINDOW] as usize).checked_sub(1) {
                Some(last) if place + WINDOW > at && last >= self.base && last + WINDOW >= at => place = last,
                _ => break,
            }
        }
        found
    }
}
