//! The pages of one column, one after the other: header, decompression, levels, values.
//!
//! A column without nesting has one level, which says whether a value is there. A value that is not there is refused like an empty field
//! of a text file, so that after the levels every row has a value.

use super::encodings as encoding;
use super::footer::{Chunk, Field, Physical};
use super::thrift::Cursor;
use super::{Bytes, Outcome};
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

/// The largest page taken, unpacked: writers make them of about a megabyte. A bound on what a hostile file can make us hold.
const LARGEST_PAGE: usize = 1 << 28;
/// Most values of a page: few bytes may stand for very many equal values.
const MOST_VALUES: usize = 1 << 24;
/// Most values that are unpacked at once.
const AT_ONCE: usize = 1 << 12;
/// Bytes read to find a page's header, at first.
const HEADER: u64 = 1 << 10;

/// Values of a page, or of a part of it, none missing.
#[derive(Debug, Clone)]
pub(super) enum Values {
    /// 64 bits each: whole numbers, f64 bits, or 0 and 1.
    Bits(Vec<u64>),
    /// Where each text lies in the bytes, which a dictionary's pages share.
    Texts { bytes: Arc<Vec<u8>>, ranges: Vec<Range<usize>> },
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Values::Bits(values) => values.len(),
            Values::Texts { ranges, .. } => ranges.len(),
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Values::Bits(values) => size_of_val(&values[..]),
            Values::Texts { bytes, ranges } => bytes.len() + size_of_val(&ranges[..]),
        }
    }
}

/// What pages refer to by its place.
enum Dictionary {
    /// Numbers of a fixed width, as they are in the file.
    Plain {
        bytes: Vec<u8>,
        width: usize,
    },
    Other(Values),
}

impl Dictionary {
    fn len(&self) -> usize {
        match self {
            Dictionary::Plain { bytes, width } => bytes.len() / width,
            Dictionary::Other(values) => values.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Dictionary::Plain { bytes, .. } => bytes.len(),
            Dictionary::Other(values) => values.bytes(),
        }
    }

    /// The values at some places.
    fn pick(&self, places: &[u32], physical: Physical) -> Outcome<Values> {
        if places.iter().any(|&place| place as usize >= self.len()) {
            return Err("a value lies outside its dictionary".into());
        }
        let places = places.iter().map(|&place| place as usize);
        Ok(match self {
            Dictionary::Plain { bytes, width } => {
                let value = |place: usize| encoding::bits(&bytes[place * width..(place + 1) * width], physical);
                Values::Bits(places.map(value).collect())
            }
            Dictionary::Other(Values::Bits(values)) => Values::Bits(places.map(|place| values[place]).collect()),
            Dictionary::Other(Values::Texts { bytes, ranges }) => {
                Values::Texts { bytes: bytes.clone(), ranges: places.map(|place| ranges[place].clone()).collect() }
            }
        })
    }
}

/// A page that is being unpacked.
enum Page {
    /// Places in the dictionary.
    Places(encoding::Hybrid),
    Truths(encoding::Hybrid),
    /// Numbers of a fixed width, from a place in the bytes on.
    Plain {
        bytes: Vec<u8>,
        at: usize,
        left: usize,
    },
}

impl Page {
    fn left(&self) -> usize {
        match self {
            Page::Places(page) | Page::Truths(page) => page.left,
            Page::Plain { left, .. } => *left,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Page::Places(page) | Page::Truths(page) => page.bytes(),
            Page::Plain { bytes, .. } => bytes.len(),
        }
    }
}

/// What a page's header says.
#[derive(Debug, Default)]
struct Header {
    kind: i64,
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
    /// Bytes of the levels of a page of the second version, which lie in front and are never compressed.
    levels: Option<(i64, i64)>,
    compressed: bool,
}

/// A value that is not there, or a damaged page.
pub(super) enum Stop {
    /// The row, counted from the page's first.
    Missing(usize),
    Trouble(super::Trouble),
}

impl<T: Into<super::Trouble>> From<T> for Stop {
    fn from(trouble: T) -> Self {
        Stop::Trouble(trouble.into())
    }
}

/// The pages of a column in one row group.
pub(super) struct Pages {
    physical: Physical,
    optional: bool,
    codec: i64,
    at: u64,
    end: u64,
    /// Values that are still to come.
    left: u64,
    dictionary: Option<Dictionary>,
    current: Option<Page>,
}

impl Pages {
    pub(super) fn new(field: &Field, chunk: &Chunk, rows: u64) -> Self {
        Pages {
            physical: field.physical,
            optional: field.optional,
            codec: chunk.codec,
            at: chunk.start,
            end: chunk.start + chunk.length,
            left: rows,
            dictionary: None,
            current: None,
        }
    }

    /// Bytes of the dictionary and of the page that is being unpacked.
    pub(super) fn bytes(&self) -> usize {
        self.dictionary.as_ref().map_or(0, Dictionary::bytes) + self.current.as_ref().map_or(0, Page::bytes)
    }

    /// The values of the next page, or of a part of it, no more than are wanted where that is possible; `None` after the last.
    pub(super) fn next(&mut self, file: &Bytes, wanted: usize) -> Result<Option<Values>, Stop> {
        while self.left > 0 {
            if let Some(values) = self.more(wanted)? {
                self.left -= values.len() as u64;
                return Ok(Some(values));
            }
            let header = self.header(file)?;
            let size = u64::try_from(header.packed).ok().filter(|&size| size <= self.end - self.at);
            let body = file.read(self.at, size.ok_or("a page claims more bytes than its column has")?)?;
            self.at += body.len() as u64;
            match header.kind {
                0 | 3 => {
                    if let Some(values) = self.data(&header, &body)? {
                        self.left -= values.len() as u64;
                        return Ok(Some(values));
                    }
                }
                2 if self.dictionary.is_none() => self.dictionary = Some(self.dictionary(&header, &body)?),
                2 => return Err("a column has two dictionaries".into()),
                // an index page, or one of a later version
                _ => {}
            }
        }
        Ok(None)
    }

    /// The next part of the page that is being unpacked.
    fn more(&mut self, wanted: usize) -> Outcome<Option<Values>> {
        let most = wanted.clamp(1, AT_ONCE);
        match self.current.as_mut().filter(|page| page.left() > 0) {
            None => {
                self.current = None;
                Ok(None)
            }
            Some(Page::Truths(page)) => {
                let mut values = Vec::new();
                page.next(most, |bit| values.push(bit))?;
                Ok(Some(Values::Bits(values)))
            }
            Some(Page::Plain { bytes, at, left }) => {
                let count = most.min(*left);
                let values = encoding::plain(&bytes[*at..], self.physical, count)?;
                *at += count * encoding::width(self.physical)?;
                *left -= count;
                Ok(Some(Values::Bits(values)))
            }
            Some(Page::Places(page)) => {
                let dictionary = self.dictionary.as_ref().ok_or("a page refers to a dictionary that is not there")?;
                let mut places = Vec::new();
                page.next(most, |place| places.push(place as u32))?;
                dictionary.pick(&places, self.physical).map(Some)
            }
        }
    }

    fn header(&mut self, file: &Bytes) -> Outcome<Header> {
        let left = self.end - self.at;
        let mut looked_at = HEADER.min(left);
        loop {
            if left == 0 {
                return Err("a column ends before its last value".into());
            }
            let bytes = file.read(self.at, looked_at)?;
            let mut cursor = Cursor::new(&bytes);
            match header(&mut cursor) {
                Ok(header) => {
                    self.at += cursor.at as u64;
                    return Ok(header);
                }
                Err(problem) if looked_at == left => return Err(problem.within("a page's header is damaged")),
                // it may be longer than what was looked at
                Err(_) => looked_at = (16 * looked_at).min(left),
            }
        }
    }

    fn dictionary(&self, header: &Header, body: &[u8]) -> Outcome<Dictionary> {
        let count = count(header.values, u64::MAX)?;
        if !matches!(header.encoding, 0 | 2) {
            return Err(format!("a dictionary has the unknown encoding {}", header.encoding).into());
        }
        let mut bytes = unpack(self.codec, body, header.unpacked)?;
        if !self.is_fixed() {
            return self.plain(bytes, count).map(Dictionary::Other);
        }
        let width = encoding::width(self.physical)?;
        bytes.truncate(fixed(width, &bytes, count)?);
        Ok(Dictionary::Plain { bytes, width })
    }

    /// Whether plain values have a width in bytes.
    fn is_fixed(&self) -> bool {
        !matches!(self.physical, Physical::Text | Physical::Bool)
    }

    /// The values of a page, unless they are to be unpacked part by part.
    fn data(&mut self, header: &Header, body: &[u8]) -> Result<Option<Values>, Stop> {
        let count = count(header.values, self.left)?;
        let Some((repeats, levels)) = header.levels else {
            let unpacked = unpack(self.codec, body, header.unpacked)?;
            let mut rest = &unpacked[..];
            if self.optional {
                present(encoding::prefixed(&mut rest)?, count)?;
            }
            let skipped = unpacked.len() - rest.len();
            return Ok(self.values(header.encoding, unpacked, skipped, count)?);
        };
        let (repeats, levels) = (usize::try_from(repeats).ok(), usize::try_from(levels).ok());
        let front = repeats.zip(levels).and_then(|(repeats, levels)| repeats.checked_add(levels));
        let front = front.filter(|&front| front <= body.len()).ok_or("a page's levels are longer than the page")?;
        if self.optional {
            present(&body[repeats.unwrap_or(0)..front], count)?;
        }
        let left = header.unpacked.checked_sub(front as i64).ok_or("a page has an impossible size")?;
        let codec = if header.compressed { self.codec } else { 0 };
        Ok(self.values(header.encoding, unpack(codec, &body[front..], left)?, 0, count)?)
    }

    /// The values that begin at `skipped`.
    fn values(&mut self, code: i64, bytes: Vec<u8>, skipped: usize, count: usize) -> Outcome<Option<Values>> {
        let in_dictionary = matches!(code, 2 | 8);
        if in_dictionary || (code, self.physical) == (3, Physical::Bool) {
            let kind = if in_dictionary { Page::Places } else { Page::Truths };
            let packed = (count > 0).then(|| self.packed(in_dictionary, bytes, skipped, count)).transpose()?;
            self.current = packed.map(kind);
            return Ok(None);
        }
        if code == 0 && self.is_fixed() {
            fixed(encoding::width(self.physical)?, &bytes[skipped..], count)?;
            self.current = Some(Page::Plain { bytes, at: skipped, left: count });
            return Ok(None);
        }
        self.at_once(code, bytes, skipped, count).map(Some)
    }

    /// A page of places in the dictionary, whose width the first byte tells, or of truths, whose bytes the first four.
    fn packed(&self, places: bool, bytes: Vec<u8>, skipped: usize, count: usize) -> Outcome<encoding::Hybrid> {
        let mut rest = &bytes[skipped..];
        if !places {
            return encoding::Hybrid::new(encoding::prefixed(&mut rest)?.to_vec(), 0, 1, count);
        }
        if self.dictionary.is_none() {
            return Err("a page refers to a dictionary that is not there".into());
        }
        let width = *rest.first().ok_or("its data end too early")?;
        encoding::Hybrid::new(bytes, skipped + 1, usize::from(width), count)
    }

    fn at_once(&self, code: i64, bytes: Vec<u8>, skipped: usize, count: usize) -> Outcome<Values> {
        let rest = &bytes[skipped..];
        let whole = matches!(self.physical, Physical::Int32 | Physical::Int64);
        let shifted = |range: Range<usize>| range.start + skipped..range.end + skipped;
        match (code, self.physical) {
            (0, _) => self.plain(if skipped == 0 { bytes } else { rest.to_vec() }, count),
            (5, _) if whole => {
                let mut values = encoding::delta(&mut &rest[..], count)?;
                if self.physical == Physical::Int32 {
                    values.iter_mut().for_each(|value| *value = i64::from(*value as i32) as u64);
                }
                Ok(Values::Bits(values))
            }
            (6, Physical::Text) => {
                let ranges = encoding::delta_lengths(rest, count)?.into_iter().map(shifted).collect();
                Ok(Values::Texts { bytes: Arc::new(bytes), ranges })
            }
            (7, Physical::Text) => {
                let (bytes, ranges) = encoding::delta_texts(rest, count, LARGEST_PAGE)?;
                Ok(Values::Texts { bytes: Arc::new(bytes), ranges })
            }
            (9, _) => Ok(Values::Bits(encoding::byte_stream_split(rest, self.physical, count)?)),
            _ => Err(format!("a page has the encoding {code}, which is not known for its type").into()),
        }
    }

    fn plain(&self, bytes: Vec<u8>, count: usize) -> Outcome<Values> {
        if self.physical == Physical::Text {
            let ranges = encoding::plain_texts(&bytes, count)?;
            return Ok(Values::Texts { bytes: Arc::new(bytes), ranges });
        }
        Ok(Values::Bits(encoding::plain(&bytes, self.physical, count)?))
    }
}

/// Bytes of so many values of a width, which have to be there.
fn fixed(width: usize, bytes: &[u8], count: usize) -> Outcome<usize> {
    Ok(count.checked_mul(width).filter(|&needed| needed <= bytes.len()).ok_or(encoding::ENDS)?)
}

/// A number of values that may be believed.
fn count(claimed: i64, most: u64) -> Outcome<usize> {
    match u64::try_from(claimed) {
        Ok(count) if count > most => Err("its pages hold more values than the row group has rows".into()),
        Ok(count) if count <= MOST_VALUES as u64 => Ok(count as usize),
        _ => Err(format!("a page claims {claimed} values, more than {MOST_VALUES}; write smaller pages").into()),
    }
}

/// Finds the first value that is not there.
fn present(levels: &[u8], count: usize) -> Result<(), Stop> {
    let (mut row, mut missing) = (0, None);
    encoding::hybrid(levels, 1, count, |level| {
        if level == 0 && missing.is_none() {
            missing = Some(row);
        }
        row += 1;
    })?;
    missing.map_or(Ok(()), |row| Err(Stop::Missing(row)))
}

fn header(cursor: &mut Cursor) -> Outcome<Header> {
    let mut header = Header { compressed: true, ..Header::default() };
    cursor.structure(|cursor, number, kind| {
        match number {
            1 => header.kind = cursor.number(kind)?,
            2 => header.unpacked = cursor.number(kind)?,
            3 => header.packed = cursor.number(kind)?,
            5 | 7 => cursor.inner(kind, |cursor, number, kind| {
                match number {
                    1 => header.values = cursor.number(kind)?,
                    2 => header.encoding = cursor.number(kind)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?,
            8 => {
                let (mut repeats, mut levels) = (0, 0);
                cursor.inner(kind, |cursor, number, kind| {
                    match number {
                        1 => header.values = cursor.number(kind)?,
                        4 => header.encoding = cursor.number(kind)?,
                        5 => levels = cursor.number(kind)?,
                        6 => repeats = cursor.number(kind)?,
                        7 => header.compressed = Cursor::truth(kind)?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                header.levels = Some((repeats, levels));
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(header)
}

/// Unpacks a page to the size its header claims, and no further.
fn unpack(codec: i64, packed: &[u8], claimed: i64) -> Outcome<Vec<u8>> {
    let size = match usize::try_from(claimed) {
        Ok(size) if size <= LARGEST_PAGE => size,
        _ => return Err(format!("a page claims {claimed} bytes, more than {} MB", LARGEST_PAGE >> 20).into()),
    };
    let damaged = |what: &str| format!("the {what} data of a page are damaged");
    let unpacked = match codec {
        0 => packed.to_vec(),
        _ if packed.is_empty() => Vec::new(),
        1 => {
            // no two bytes of snappy stand for more than 64, so that the length in front is believed or not before it is reserved
            let length = snap::raw::decompress_len(packed).map_err(|_| damaged("snappy"))?;
            if length != size || length > 64 * packed.len() {
                return Err(damaged("snappy").into());
            }
            snap::raw::Decoder::new().decompress_vec(packed).map_err(|_| damaged("snappy"))?
        }
        2 => limited(flate2::read::MultiGzDecoder::new(packed), size).map_err(|_| damaged("gzip"))?,
        6 => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|_| damaged("zstd"))?;
            limited(decoder, size).map_err(|_| damaged("zstd"))?
        }
        7 => {
            // a byte of lz4 stands for 255 at most
            if size > 255 * packed.len() + 64 {
                return Err(damaged("lz4").into());
            }
            lz4_flex::block::decompress(packed, size).map_err(|_| damaged("lz4"))?
        }
        3 => return Err(unknown("LZO")),
        4 => return Err(unknown("brotli")),
        5 => return Err(unknown("LZ4 in its old, deprecated form")),
        other => return Err(unknown(&format!("codec {other}"))),
    };
    if unpacked.len() != size {
        let found = unpacked.len();
        return Err(format!("a page should have {size} bytes and has {found}").into());
    }
    Ok(unpacked)
}

fn unknown(codec: &str) -> super::Trouble {
    format!("it is compressed with {codec}, which is not read here; write the file again with zstd or snappy").into()
}

/// All that a decoder has, up to one byte more than expected.
fn limited(decoder: impl Read, size: usize) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    decoder.take(size as u64 + 1).read_to_end(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_zstd_never_panics_and_never_grows_beyond_its_claim() {
        let text: Vec<u8> = (0..3000u32).flat_map(|k| (k * k % 97).to_le_bytes()).collect();
        let packed = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(unpack(6, &packed, text.len() as i64).unwrap(), text);
        for claim in [0, 1, 100, text.len() as i64 + 1, i64::MAX, -1] {
            assert!(unpack(6, &packed, claim).is_err());
        }
        for length in 0..packed.len() {
            assert!(unpack(6, &packed[..length], text.len() as i64).is_err());
        }
        for at in 0..packed.len() {
            for bit in 0..8 {
                let mut damaged = packed.clone();
                damaged[at] ^= 1 << bit;
                if let Ok(found) = unpack(6, &damaged, text.len() as i64) {
                    assert_eq!(found.len(), text.len());
                }
            }
        }
    }
    #[test]
    fn truths_in_a_dictionary_are_what_it_says() {
        let pages = || Pages {
            physical: Physical::Bool,
            optional: false,
            codec: 0,
            at: 0,
            end: 0,
            left: 5,
            dictionary: Some(Dictionary::Other(Values::Bits(vec![1, 0]))),
            current: None,
        };
        // three times the first and twice the second, in runs of values of one bit; the third is not there
        for (bytes, wanted) in [(vec![1, 3 << 1, 0, 2 << 1, 1], Some(vec![1, 1, 1, 0, 0])), (vec![2, 5 << 1, 2], None)]
        {
            let mut pages = pages();
            assert!(pages.values(8, bytes, 0, 5).unwrap().is_none());
            match (pages.more(AT_ONCE), wanted) {
                (Ok(Some(Values::Bits(found))), Some(wanted)) => assert_eq!(found, wanted),
                (found, wanted) => assert!(found.is_err() && wanted.is_none()),
            }
        }
    }
}
