//! The encodings of values within a page. Every function is told how many values to expect; what they reserve is bounded by that
//! number, which the caller has bounded, and by the bytes given.

use super::Outcome;
use super::footer::Physical;
use std::ops::Range;

pub(super) const ENDS: &str = "its data end too early";

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Outcome<&'a [u8]> {
    if count > bytes.len() {
        return Err(ENDS.into());
    }
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    Ok(taken)
}

fn varint(bytes: &mut &[u8]) -> Outcome<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number is longer than 64 bits".into())
}

fn length(bytes: &mut &[u8]) -> Outcome<usize> {
    let found = take(bytes, 4)?;
    Ok(u32::from_le_bytes([found[0], found[1], found[2], found[3]]) as usize)
}

/// A part that begins with its length in four bytes.
pub(super) fn prefixed<'a>(bytes: &mut &'a [u8]) -> Outcome<&'a [u8]> {
    let count = length(bytes)?;
    take(bytes, count)
}

/// Bits from the lowest on, `width` at a time, behind some that are skipped.
fn unpack(bytes: &[u8], skipped: usize, width: usize, count: usize, mut each: impl FnMut(u64)) -> Outcome<()> {
    let needed = (count as u64).saturating_mul(width as u64).saturating_add(skipped as u64);
    if needed > 8 * bytes.len() as u64 {
        return Err(ENDS.into());
    }
    let (mut held, mut have, mut at) = (0u128, 0, skipped / 8);
    if !skipped.is_multiple_of(8) && count > 0 {
        (held, have, at) = (u128::from(bytes[at] >> (skipped % 8)), 8 - skipped % 8, at + 1);
    }
    for _ in 0..count {
        while have < width {
            held |= u128::from(bytes[at]) << have;
            have += 8;
            at += 1;
        }
        each((held & ((1u128 << width) - 1)) as u64);
        held >>= width;
        have -= width;
    }
    Ok(())
}

/// Runs of one value and runs of packed bits, in turns. They are unpacked a few at a time, because few bytes may stand for very many values.
pub(super) struct Hybrid {
    bytes: Vec<u8>,
    at: usize,
    width: usize,
    /// Values that are still to come.
    pub left: usize,
    /// Values of this run that are still to come, and what they are: one value, or bits from a place on, up to another.
    run: (usize, Run),
}

enum Run {
    Equal(u64),
    Packed { bit: usize, end: usize },
}

impl Hybrid {
    /// So many values, in the bytes from a place on.
    pub(super) fn new(bytes: Vec<u8>, at: usize, width: usize, count: usize) -> Outcome<Hybrid> {
        if width > 32 {
            return Err("values are wider than 32 bits".into());
        }
        Ok(Hybrid { bytes, at, width, left: count, run: (0, Run::Equal(0)) })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Hands the next values to `each`, `most` of them or all that are left.
    pub(super) fn next(&mut self, most: usize, mut each: impl FnMut(u64)) -> Outcome<()> {
        let mut wanted = most.min(self.left);
        while wanted > 0 {
            while self.run.0 == 0 {
                self.run = self.begin()?;
            }
            let count = self.run.0.min(wanted);
            match &mut self.run.1 {
                Run::Equal(value) => (0..count).for_each(|_| each(*value)),
                Run::Packed { bit, end } => {
                    let from = *bit / 8;
                    unpack(&self.bytes[from..*end], *bit % 8, self.width, count, &mut each)?;
                    *bit += count * self.width;
                }
            }
            self.run.0 -= count;
            self.left -= count;
            wanted -= count;
        }
        Ok(())
    }

    /// The next run.
    fn begin(&mut self) -> Outcome<(usize, Run)> {
        let mut rest = &self.bytes[self.at..];
        let head = varint(&mut rest)?;
        let run = usize::try_from(head >> 1).map_err(|_| ENDS)?;
        let begun = if head & 1 == 1 {
            // the last run may be cut off after its last value
            let packed = run.checked_mul(self.width).ok_or(ENDS)?.min(rest.len());
            let start = self.bytes.len() - rest.len();
            take(&mut rest, packed)?;
            (run.saturating_mul(8), Run::Packed { bit: 8 * start, end: start + packed })
        } else {
            let mut value = 0;
            for (at, byte) in take(&mut rest, self.width.div_ceil(8))?.iter().enumerate() {
                value |= u64::from(*byte) << (8 * at);
            }
            if run == 0 {
                return Err("a run has no values".into());
            }
            (run, Run::Equal(value))
        };
        self.at = self.bytes.len() - rest.len();
        Ok(begun)
    }
}

/// All values of [`Hybrid`].
pub(super) fn hybrid(bytes: &[u8], width: usize, count: usize, each: impl FnMut(u64)) -> Outcome<()> {
    Hybrid::new(bytes.to_vec(), 0, width, count)?.next(count, each)
}

/// Values as they stand: fixed-width ones as 64 bits each (f64 bits for floats), in order.
pub(super) fn plain(bytes: &[u8], physical: Physical, count: usize) -> Outcome<Vec<u64>> {
    if physical == Physical::Bool {
        let mut values = Vec::new();
        unpack(bytes, 0, 1, count, |bit| values.push(bit))?;
        return Ok(values);
    }
    let width = width(physical)?;
    let needed = count.checked_mul(width).filter(|&needed| needed <= bytes.len()).ok_or(ENDS)?;
    Ok(bytes[..needed].chunks_exact(width).map(|piece| bits(piece, physical)).collect())
}

/// Bytes of a value of fixed width.
pub(super) fn width(physical: Physical) -> Outcome<usize> {
    match physical {
        Physical::Int32 | Physical::Float => Ok(4),
        Physical::Int64 | Physical::Double => Ok(8),
        Physical::Fixed(2) => Ok(2),
        _ => Err("an encoding does not fit the type of its column".into()),
    }
}

/// A value of fixed width as 64 bits.
pub(super) fn bits(piece: &[u8], physical: Physical) -> u64 {
    let mut whole = [0u8; 8];
    whole[..piece.len()].copy_from_slice(piece);
    let raw = u64::from_le_bytes(whole);
    match physical {
        Physical::Int32 => i64::from(raw as u32 as i32) as u64,
        Physical::Float => f64::from(f32::from_bits(raw as u32)).to_bits(),
        Physical::Fixed(_) => half(raw as u16).to_bits(),
        _ => raw,
    }
}

/// A number of 16 bits: sign, five bits of exponent, ten of fraction.
fn half(raw: u16) -> f64 {
    let fraction = f64::from(raw & 0x3ff);
    let size = match (raw >> 10) & 0x1f {
        0 => fraction * (-24f64).exp2(),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * (f64::from(exponent) - 15.0).exp2(),
    };
    if raw >> 15 == 1 { -size } else { size }
}

/// The first bytes of all values, then the second bytes of all, and so on.
pub(super) fn byte_stream_split(bytes: &[u8], physical: Physical, count: usize) -> Outcome<Vec<u64>> {
    let width = width(physical)?;
    count.checked_mul(width).filter(|&needed| needed <= bytes.len()).ok_or(ENDS)?;
    let mut piece = [0u8; 8];
    let value = |row: usize| {
        (0..width).for_each(|byte| piece[byte] = bytes[byte * count + row]);
        bits(&piece[..width], physical)
    };
    Ok((0..count).map(value).collect())
}

/// Texts as they stand: four bytes of length, then the bytes. Returns where they lie.
pub(super) fn plain_texts(bytes: &[u8], count: usize) -> Outcome<Vec<Range<usize>>> {
    let mut ranges = Vec::new();
    let mut rest = bytes;
    for _ in 0..count {
        let text = prefixed(&mut rest)?;
        let end = bytes.len() - rest.len();
        ranges.push(end - text.len()..end);
    }
    Ok(ranges)
}

/// Whole numbers as packed differences; `bytes` ends behind them.
pub(super) fn delta(bytes: &mut &[u8], count: usize) -> Outcome<Vec<u64>> {
    let block = varint(bytes)?;
    let minis = varint(bytes)?;
    let total = varint(bytes)?;
    if total != count as u64 {
        return Err(format!("it should hold {count} values and holds {total}").into());
    }
    if block == 0 || minis == 0 || block > 1 << 20 || !block.is_multiple_of(minis) || !(block / minis).is_multiple_of(8)
    {
        return Err("its blocks have an impossible size".into());
    }
    let (minis, size) = (minis as usize, (block / minis) as usize);
    let zigzag = |value: u64| (value >> 1) ^ (value & 1).wrapping_neg();
    let mut value = zigzag(varint(bytes)?);
    let mut values = Vec::new();
    if count > 0 {
        values.push(value);
    }
    while values.len() < count {
        let least = zigzag(varint(bytes)?);
        let widths = take(bytes, minis)?;
        for &width in widths {
            // what lies behind the last value is left out
            if values.len() >= count {
                break;
            }
            if width > 64 {
                return Err("differences are wider than 64 bits".into());
            }
            let packed = take(bytes, size / 8 * usize::from(width))?;
            let here = size.min(count - values.len());
            unpack(packed, 0, usize::from(width), here, |difference| {
                value = value.wrapping_add(least).wrapping_add(difference);
                values.push(value);
            })?;
        }
    }
    Ok(values)
}

/// The lengths of all texts, then their bytes. Returns where they lie.
pub(super) fn delta_lengths(bytes: &[u8], count: usize) -> Outcome<Vec<Range<usize>>> {
    let mut rest = bytes;
    let lengths = delta(&mut rest, count)?;
    let mut start = bytes.len() - rest.len();
    let mut ranges = Vec::new();
    for length in lengths {
        let length = usize::try_from(length).map_err(|_| ENDS)?;
        let end = start.checked_add(length).filter(|&end| end <= bytes.len()).ok_or(ENDS)?;
        ranges.push(start..end);
        start = end;
    }
    Ok(ranges)
}

/// Texts that share their beginning with the text before. Returns their bytes and where each lies in them; `most` bounds the bytes.
pub(super) fn delta_texts(bytes: &[u8], count: usize, most: usize) -> Outcome<(Vec<u8>, Vec<Range<usize>>)> {
    let mut rest = bytes;
    let shared = delta(&mut rest, count)?;
    let tails = delta_lengths(rest, count)?;
    let (mut text, mut ranges) = (Vec::new(), Vec::<Range<usize>>::new());
    for (shared, tail) in shared.into_iter().zip(tails) {
        let before = ranges.last().cloned().unwrap_or(0..0);
        let shared = usize::try_from(shared).ok().filter(|&shared| shared <= before.len()).ok_or(ENDS)?;
        let start = text.len();
        text.extend_from_within(before.start..before.start + shared);
        text.extend_from_slice(&rest[tail]);
        if text.len() > most {
            return Err("its texts are longer than a page may be".into());
        }
        ranges.push(start..text.len());
    }
    Ok((text, ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three bits each: five equal values, then two groups of eight, then one value very often.
    fn runs() -> (Vec<u8>, Vec<u64>) {
        let packed: Vec<u64> = (0..16).map(|at| (5 * at + 1) % 8).collect();
        let mut bytes = vec![5 << 1, 6, (2 << 1) | 1];
        for group in packed.chunks(8) {
            let bits = group.iter().enumerate().fold(0u64, |bits, (at, value)| bits | value << (3 * at));
            bytes.extend_from_slice(&bits.to_le_bytes()[..3]);
        }
        bytes.extend_from_slice(&[0xd0, 0x0f, 2]);
        let values = [vec![6; 5], packed, vec![2; 1000]].concat();
        (bytes, values)
    }

    #[test]
    fn runs_can_be_unpacked_in_pieces_of_any_size() {
        let (bytes, wanted) = runs();
        for most in [1, 2, 3, 7, 8, 100, wanted.len(), usize::MAX] {
            let mut runs = Hybrid::new([&[9, 9], &bytes[..]].concat(), 2, 3, wanted.len()).unwrap();
            let mut found = Vec::new();
            while runs.left > 0 {
                let before = found.len();
                runs.next(most, |value| found.push(value)).unwrap();
                assert!(found.len() > before && found.len() - before <= most);
            }
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn runs_that_end_too_early_are_refused() {
        let (bytes, wanted) = runs();
        for length in 0..bytes.len() {
            assert!(hybrid(&bytes[..length], 3, wanted.len(), |_| {}).is_err(), "{length}");
        }
        // more values than there are, a run of nothing, bits that no type has
        assert!(hybrid(&bytes, 3, wanted.len() + 1, |_| {}).is_err());
        assert!(hybrid(&[0, 1], 3, 1, |_| {}).is_err());
        assert!(Hybrid::new(bytes, 0, 33, 1).is_err());
    }
}
