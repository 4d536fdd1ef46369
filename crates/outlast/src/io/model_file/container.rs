//! The outer form of a model file: named arrays of numbers under a text header, with a checksum.
//!
//! ```text
//! offset  bytes
//!      0  8        "OUTLAST\0"
//!      8  4        format version, u32
//!     12  8        length H of the header, u64
//!     20  H        header: JSON, UTF-8; lists the arrays with name, type, shape and offset from the end of the header
//! 20 + H  ...      the arrays, back to back
//!  end-4  4        CRC-32 (IEEE) of all bytes before it, u32
//! ```
//!
//! Every number is little-endian. Floating-point numbers live in arrays only, so each bit survives, infinities and NaN
//! included. Reading takes the sizes from the header, compares them with the bytes that are there, and only then allocates.

use serde::{Deserialize, Serialize};

/// First bytes of every model file.
pub(super) const MAGIC: &[u8; 8] = b"OUTLAST\0";

/// Bytes before the header.
pub(super) const PREAMBLE: usize = 20;

const CHECKSUM: usize = 4;

/// The kinds of numbers an array holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    F64,
    U32,
    U64,
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Kind::F64 | Kind::U64 => 8,
            Kind::U32 => 4,
        }
    }
}

/// Where an array lies.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub name: String,
    pub dtype: Kind,
    pub shape: Vec<u64>,
    pub offset: u64,
}

impl Entry {
    /// Number of elements, if it can be counted.
    fn len(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size))
    }
}

/// Arrays being collected for writing.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    pub entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl Arrays {
    pub fn f64(&mut self, name: &str, shape: &[usize], values: &[f64]) {
        self.add(name, Kind::F64, shape, values.iter().map(|value| value.to_le_bytes()));
    }

    pub fn u32(&mut self, name: &str, shape: &[usize], values: &[u32]) {
        self.add(name, Kind::U32, shape, values.iter().map(|value| value.to_le_bytes()));
    }

    pub fn u64(&mut self, name: &str, shape: &[usize], values: impl Iterator<Item = u64>) {
        self.add(name, Kind::U64, shape, values.map(|value| value.to_le_bytes()));
    }

    fn add<const N: usize>(&mut self, name: &str, dtype: Kind, shape: &[usize], values: impl Iterator<Item = [u8; N]>) {
        let shape = shape.iter().map(|&size| size as u64).collect();
        self.entries.push(Entry { name: name.to_string(), dtype, shape, offset: self.bytes.len() as u64 });
        values.for_each(|value| self.bytes.extend_from_slice(&value));
    }

    /// The whole file.
    pub fn seal(self, version: u32, header: &[u8]) -> Vec<u8> {
        let mut file = Vec::with_capacity(PREAMBLE + header.len() + self.bytes.len() + CHECKSUM);
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&version.to_le_bytes());
        file.extend_from_slice(&(header.len() as u64).to_le_bytes());
        file.extend_from_slice(header);
        file.extend_from_slice(&self.bytes);
        let checksum = crc32fast::hash(&file);
        file.extend_from_slice(&checksum.to_le_bytes());
        file
    }
}

/// A file opened: version, header and the bytes of the arrays.
#[derive(Debug)]
pub(super) struct Opened<'a> {
    pub header: &'a [u8],
    data: &'a [u8],
}

/// Checks magic, version and checksum, in the order in which each tells most.
pub(super) fn open(file: &[u8], version: u32) -> Result<Opened<'_>, String> {
    let magic = &file[..file.len().min(MAGIC.len())];
    if file.is_empty() {
        return Err("the file is empty, not a model".to_string());
    }
    if magic != &MAGIC[..magic.len()] {
        return Err("this is not a model file".to_string());
    }
    let truncated = || "the model file is damaged: it ends too early".to_string();
    let found = u32::from_le_bytes(array(file, 8).ok_or_else(truncated)?);
    if found > version {
        return Err(format!(
            "the model file has format version {found}, newer than the {version} known here; update outlast to read it"
        ));
    }
    let body_end = file.len().checked_sub(CHECKSUM).filter(|&end| end >= PREAMBLE).ok_or_else(truncated)?;
    let checksum = u32::from_le_bytes(array(file, body_end).ok_or_else(truncated)?);
    if crc32fast::hash(&file[..body_end]) != checksum {
        return Err("the model file is damaged: its checksum does not match (cut short or changed)".to_string());
    }
    if found == 0 {
        return Err("the model file is damaged: format version 0 never existed".to_string());
    }
    let length = u64::from_le_bytes(array(file, 12).ok_or_else(truncated)?);
    let body = &file[PREAMBLE..body_end];
    let length = usize::try_from(length).ok().filter(|&length| length <= body.len()).ok_or_else(truncated)?;
    let (header, data) = body.split_at(length);
    Ok(Opened { header, data })
}

/// `N` bytes at an offset, if they are there.
fn array<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Arrays of an opened file, by name.
pub(super) struct Reader<'a> {
    pub entries: &'a [Entry],
    pub opened: &'a Opened<'a>,
}

impl<'a> Reader<'a> {
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    pub fn f64(&self, name: &str) -> Result<(Vec<f64>, &'a [u64]), String> {
        let (bytes, shape) = self.find(name, Kind::F64)?;
        Ok((bytes.as_chunks().0.iter().map(|&chunk| f64::from_le_bytes(chunk)).collect(), shape))
    }

    pub fn u32(&self, name: &str) -> Result<Vec<u32>, String> {
        let (bytes, _) = self.find(name, Kind::U32)?;
        Ok(bytes.as_chunks().0.iter().map(|&chunk| u32::from_le_bytes(chunk)).collect())
    }

    pub fn u64(&self, name: &str) -> Result<Vec<u64>, String> {
        let (bytes, _) = self.find(name, Kind::U64)?;
        Ok(bytes.as_chunks().0.iter().map(|&chunk| u64::from_le_bytes(chunk)).collect())
    }

    /// An array of one number.
    pub fn scalar(&self, name: &str) -> Result<f64, String> {
        match self.f64(name)?.0[..] {
            [value] => Ok(value),
            ref values => Err(format!("{name} holds {} numbers instead of one", values.len())),
        }
    }

    fn find(&self, name: &str, dtype: Kind) -> Result<(&'a [u8], &'a [u64]), String> {
        let entry = self.entries.iter().find(|entry| entry.name == name).ok_or(format!("{name} is missing"))?;
        if entry.dtype != dtype {
            return Err(format!("{name} is of type {:?} instead of {dtype:?}", entry.dtype));
        }
        let bytes = entry.len().and_then(|len| len.checked_mul(dtype.bytes() as u64));
        let range = bytes.and_then(|bytes| Some(entry.offset..entry.offset.checked_add(bytes)?));
        let range = range.filter(|range| range.end <= self.opened.data.len() as u64);
        let range = range.ok_or(format!("{name} reaches beyond the end of the file"))?;
        Ok((&self.opened.data[range.start as usize..range.end as usize], &entry.shape))
    }
}
