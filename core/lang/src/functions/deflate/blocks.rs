//! Blocks of tokens, each in the shortest of the three forms that there are

use super::Token;
use super::codes::{Codes, bits, codes_for, from_lengths};

const END: usize = 256;
/// The order in which the lengths of the codes for lengths are written (section 3.2.7 of the RFC).
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// The longest block that is stored as it is.
const STORED: usize = 65535;

/// The smallest length that is written with a code from 257 on, less 3 (section 3.2.5).
const LENGTHS: [usize; 29] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 255];
/// How many bits follow such a code.
const LENGTH_BITS: [u8; 29] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/// The smallest distance of a code, less 1, and how many bits follow it.
fn distance_base(code: usize) -> (usize, u8) {
    let extra = (code / 2).saturating_sub(1);
    let base = if code < 4 { code } else { (2 + code % 2) << extra };
    (base, u8::try_from(extra).unwrap_or(0))
}

/// The code of a length, and what follows it in how many bits.
fn length_code(length: usize) -> (usize, usize, u8) {
    let code = LENGTHS.partition_point(|base| *base <= length - 3) - 1;
    (END + 1 + code, length - 3 - LENGTHS[code], LENGTH_BITS[code])
}

/// The same of a distance.
fn distance_code(distance: usize) -> (usize, usize, u8) {
    let code = (0..30).rfind(|code| distance_base(*code).0 < distance).unwrap_or(0);
    let (base, extra) = distance_base(code);
    (code, distance - 1 - base, extra)
}

/// A run in the lengths of codes: the code for it, what follows in how many bits.
type Run = (usize, usize, u8);

/// Bits, the lowest first.
#[derive(Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    waiting: u64,
    count: u8,
}

impl Writer {
    /// Writes tokens; `input` is what they stand for, if it is still at hand.
    pub(super) fn block(&mut self, tokens: &[Token], input: Option<&[u8]>) {
        let (mut literals, mut distances) = ([0_u32; 286], [0_u32; 30]);
        literals[END] = 1;
        let mut extra = 0;
        for token in tokens {
            match token {
                Token::Literal(byte) => literals[usize::from(*byte)] += 1,
                Token::Repeat { length, distance } => {
                    let ((length, _, more), (distance, _, also)) = (length_code(*length), distance_code(*distance));
                    literals[length] += 1;
                    distances[distance] += 1;
                    extra += usize::from(more + also);
                }
            }
        }
        // One code for distances there must be.
        if distances.iter().all(|count| *count == 0) {
            distances[0] = 1;
        }
        let fixed = fixed();
        let own = (codes_for(&literals, 15), codes_for(&distances, 15));
        let header = Header::of(&own);
        // What follows codes counts in a comparison with storing alone: it is the same for both codes.
        let input = input.filter(|input| input.len() <= STORED);
        let extra = if input.is_some() { extra } else { 0 };
        let size = |(for_literals, for_distances): &(Codes, Codes)| bits(&literals, for_literals) + bits(&distances, for_distances) + extra;
        let (with_fixed, with_own) = (3 + size(&fixed), header.bits() + size(&own));
        match input.filter(|input| (input.len() + 5) * 8 < with_fixed.min(with_own)) {
            Some(input) => self.stored(input, false),
            None if with_own < with_fixed => {
                header.write(self);
                self.tokens(tokens, &own);
            }
            None => {
                self.bits(0b010, 3);
                self.tokens(tokens, &fixed);
            }
        }
    }

    /// An empty block, as after a flush, and another one, the last.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.stored(&[], false);
        self.stored(&[], true);
        self.bytes
    }

    fn tokens(&mut self, tokens: &[Token], (literals, distances): &(Codes, Codes)) {
        for token in tokens {
            match token {
                Token::Literal(byte) => self.code(literals[usize::from(*byte)]),
                Token::Repeat { length, distance } => {
                    let (code, rest, extra) = length_code(*length);
                    self.code(literals[code]);
                    self.bits(rest, extra);
                    let (code, rest, extra) = distance_code(*distance);
                    self.code(distances[code]);
                    self.bits(rest, extra);
                }
            }
        }
        self.code(literals[END]);
    }

    fn stored(&mut self, input: &[u8], is_last: bool) {
        self.bits(usize::from(is_last), 3);
        self.bits(0, (8 - self.count % 8) % 8);
        let length = u16::try_from(input.len()).unwrap_or(u16::MAX);
        self.bits(usize::from(length), 16);
        self.bits(usize::from(!length), 16);
        self.bytes.extend_from_slice(input);
    }

    fn code(&mut self, (bits, count): (u16, u8)) {
        self.bits(usize::from(bits), count);
    }

    fn bits(&mut self, bits: usize, count: u8) {
        self.waiting |= (bits as u64) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.waiting.to_le_bytes()[0]);
            self.waiting >>= 8;
            self.count -= 8;
        }
    }
}

/// The codes that need no header (section 3.2.6).
fn fixed() -> (Codes, Codes) {
    let lengths: Vec<u8> = (0..288)
        .map(|symbol| match symbol {
            0..144 => 8,
            144..256 => 9,
            256..280 => 7,
            _ => 8,
        })
        .collect();
    (from_lengths(&lengths), from_lengths(&[5; 30]))
}

/// What says which codes follow.
struct Header {
    literals: usize,
    distances: usize,
    runs: Vec<Run>,
    codes: Codes,
    /// How many of `ORDER` are written.
    written: usize,
}

impl Header {
    fn of((literals, distances): &(Codes, Codes)) -> Self {
        let used = |codes: &Codes, least: usize| codes.iter().rposition(|(_, length)| *length > 0).map_or(least, |last| last + 1);
        let (for_literals, for_distances) = (used(literals, END + 1), used(distances, 1));
        let lengths: Vec<u8> = literals[..for_literals].iter().chain(&distances[..for_distances]).map(|(_, length)| *length).collect();
        let runs: Vec<Run> = lengths.chunk_by(|a, b| a == b).flat_map(|same| runs(usize::from(same[0]), same.len())).collect();
        let mut counts = [0; 19];
        runs.iter().for_each(|(code, ..)| counts[*code] += 1);
        let codes = codes_for(&counts, 7);
        let written = ORDER.iter().rposition(|code| counts[*code] > 0).map_or(4, |last| (last + 1).max(4));
        Self { literals: for_literals, distances: for_distances, runs, codes, written }
    }

    fn bits(&self) -> usize {
        let runs = self.runs.iter().map(|(code, _, extra)| usize::from(self.codes[*code].1 + extra));
        3 + 5 + 5 + 4 + 3 * self.written + runs.sum::<usize>()
    }

    fn write(&self, to: &mut Writer) {
        to.bits(0b100, 3);
        to.bits(self.literals - 257, 5);
        to.bits(self.distances - 1, 5);
        to.bits(self.written - 4, 4);
        ORDER[..self.written].iter().for_each(|code| to.bits(usize::from(self.codes[*code].1), 3));
        for (code, rest, extra) in &self.runs {
            to.code(self.codes[*code]);
            to.bits(*rest, *extra);
        }
    }
}

/// So many lengths that are the same, as runs (section 3.2.7).
fn runs(length: usize, count: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut left = count;
    if length == 0 {
        while left >= 11 {
            let run = left.min(138);
            runs.push((18, run - 11, 7));
            left -= run;
        }
        if left >= 3 {
            runs.push((17, left - 3, 3));
            left = 0;
        }
    } else {
        runs.push((length, 0, 0));
        left -= 1;
        while left >= 3 {
            let run = left.min(6);
            runs.push((16, run - 3, 2));
            left -= run;
        }
    }
    runs.extend((0..left).map(|_| (length, 0, 0)));
    runs
}
