//! The encodings of values within a page. Every function is told how many values to expect; what they reserve is bounded by that
//! number, which the caller has bounded, and by the bytes given.

use super::Outcome;
use super::footer::Physical;
use std::ops::Range;

const ENDS: &str = "its data end too early";

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

/// Bits from the lowest on, `width` at a time.
fn unpack(bytes: &[u8], width: usize, count: usize, mut each: impl FnMut(u64)) -> Outcome<()> {
    if (count as u64).saturating_mul(width as u64) > 8 * bytes.len() as u64 {
        return Err(ENDS.into());
    }
    let (mut held, mut have, mut at) = (0u128, 0, 0);
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

/// Runs of one value and runs of packed bits, in turns, until `count` values have been given to `each`.
pub(super) fn hybrid(mut bytes: &[u8], width: usize, count: usize, mut each: impl FnMut(u64)) -> Outcome<()> {
    if width > 32 {
        return Err("values are wider than 32 bits".into());
    }
    let mut left = count;
    while left > 0 {
        let head = varint(&mut bytes)?;
        let run = usize::try_from(head >> 1).map_err(|_| ENDS)?;
        if head & 1 == 1 {
            let packed = run.checked_mul(width).ok_or(ENDS)?;
            let values = run.saturating_mul(8).min(left);
            // the last run may be cut off after its last value
            let packed = packed.min(bytes.len());
            let packed = take(&mut bytes, packed)?;
            unpack(packed, width, values, &mut each)?;
            left -= values;
        } else {
            let mut value = 0;
            for (at, byte) in take(&mut bytes, width.div_ceil(8))?.iter().enumerate() {
                value |= u64::from(*byte) << (8 * at);
            }
            let values = run.min(left);
            if run == 0 {
                return Err("a run has no values".into());
            }
            (0..values).for_each(|_| each(value));
            left -= values;
        }
    }
    Ok(())
}

/// Values as they stand: fixed-width ones as 64 bits each (f64 bits for floats), in order.
pub(super) fn plain(bytes: &[u8], physical: Physical, count: usize) -> Outcome<Vec<u64>> {
    if physical == Physical::Bool {
        let mut values = Vec::new();
        unpack(bytes, 1, count, |bit| values.push(bit))?;
        return Ok(values);
    }
    let width = width(physical)?;
    let needed = count.checked_mul(width).filter(|&needed| needed <= bytes.len()).ok_or(ENDS)?;
    Ok(bytes[..needed].chunks_exact(width).map(|piece| bits(piece, physical)).collect())
}

fn width(physical: Physical) -> Outcome<usize> {
    match physical {
        Physical::Int32 | Physical::Float => Ok(4),
        Physical::Int64 | Physical::Double => Ok(8),
        Physical::Fixed(2) => Ok(2),
        _ => Err("an encoding does not fit the type of its column".into()),
    }
}

/// A value of fixed width as 64 bits.
fn bits(piece: &[u8], physical: Physical) -> u64 {
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
            unpack(packed, usize::from(width), here, |difference| {
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
