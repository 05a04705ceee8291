//! Huffman codes: which bits stand for which symbol

/// A code for each symbol: its bits, the first one lowest, and how many they are.
pub(super) type Codes = Vec<(u16, u8)>;

/// Codes of at most so many bits that are shortest together for symbols that occur so often.
pub(super) fn codes_for(counts: &[u32], longest: usize) -> Codes {
    from_lengths(&lengths(counts, longest))
}

/// The codes that follow from their lengths (section 3.2.2 of the RFC).
pub(super) fn from_lengths(lengths: &[u8]) -> Codes {
    let mut codes = vec![(0, 0); lengths.len()];
    let mut next = 0_u16;
    for length in 1..=15 {
        next <<= 1;
        for (code, _) in codes.iter_mut().zip(lengths).filter(|(_, l)| **l == length) {
            *code = (next.reverse_bits() >> (16 - length), length);
            next += 1;
        }
    }
    codes
}

/// How many bits symbols take that occur so often.
pub(super) fn bits(counts: &[u32], codes: &Codes) -> usize {
    counts.iter().zip(codes).map(|(count, (_, length))| *count as usize * usize::from(*length)).sum()
}

/// What one row of the package merge has: a symbol itself, or two of the row below.
#[derive(Clone, Copy)]
struct Item {
    count: u32,
    is_symbol: bool,
}

/// Package merge: each row has all symbols and pairs of the row below, by how often they occur (a pair comes before a symbol that occurs as often).
/// A symbol has as many bits as there are rows in which it is taken.
fn lengths(counts: &[u32], longest: usize) -> Vec<u8> {
    let mut lengths = vec![0; counts.len()];
    let mut used: Vec<usize> = (0..counts.len()).filter(|symbol| counts[*symbol] > 0).collect();
    if used.len() <= 2 {
        used.iter().for_each(|symbol| lengths[*symbol] = 1);
        return lengths;
    }
    used.sort_by_key(|symbol| counts[*symbol]);
    let symbols: Vec<Item> = used.iter().map(|symbol| Item { count: counts[*symbol], is_symbol: true }).collect();
    let mut rows = vec![symbols.clone()];
    for _ in 1..longest.min(used.len() - 1) {
        let pairs = rows.last().into_iter().flat_map(|row| row.chunks_exact(2));
        let pairs = pairs.map(|pair| Item { count: pair[0].count.saturating_add(pair[1].count), is_symbol: false });
        rows.push(merged(&symbols, pairs));
    }
    let mut taken = 2 * used.len() - 2;
    for row in rows.iter().rev() {
        let symbols = row[..taken].iter().filter(|item| item.is_symbol).count();
        used[..symbols].iter().for_each(|symbol| lengths[*symbol] += 1);
        taken = 2 * (taken - symbols);
    }
    lengths
}

fn merged(symbols: &[Item], pairs: impl Iterator<Item = Item>) -> Vec<Item> {
    let (mut row, mut symbols) = (Vec::new(), symbols.iter().copied().peekable());
    for pair in pairs {
        row.extend(std::iter::from_fn(|| symbols.next_if(|symbol| symbol.count < pair.count)));
        row.push(pair);
    }
    row.extend(symbols);
    row
}
