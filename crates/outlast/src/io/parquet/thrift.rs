//! Thrift's compact protocol, as much of it as Parquet's footer and page headers need: a cursor over bytes that never reads past
//! their end and never reserves memory for what the bytes only claim.

use super::Outcome;

/// Structures inside structures: the footer needs six.
const DEEPEST: usize = 24;

/// What a field holds, by the protocol's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind(u8);

impl Kind {
    const TRUE: Kind = Kind(1);
    const FALSE: Kind = Kind(2);
    const BYTE: Kind = Kind(3);
    const DOUBLE: Kind = Kind(7);
    const BINARY: Kind = Kind(8);
    const LIST: Kind = Kind(9);
    const SET: Kind = Kind(10);
    const MAP: Kind = Kind(11);
    const STRUCT: Kind = Kind(12);

    /// Whole numbers of 16, 32 and 64 bits are written alike.
    fn is_number(self) -> bool {
        (4..=6).contains(&self.0)
    }
}

/// Why a structure could not be read.
const ENDS: &str = "a structure ends too early";

/// A place in the bytes of a structure.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    fn byte(&mut self) -> Outcome<u8> {
        let byte = *self.bytes.get(self.at).ok_or(ENDS)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, count: usize) -> Outcome<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len()).ok_or(ENDS)?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// Seven bits to a byte, the lowest first.
    fn varint(&mut self) -> Outcome<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number is longer than 64 bits".into())
    }

    fn signed(&mut self) -> Outcome<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A whole number, where the field is one.
    pub(super) fn number(&mut self, kind: Kind) -> Outcome<i64> {
        match kind {
            kind if kind.is_number() => self.signed(),
            Kind::BYTE => Ok(i64::from(self.byte()? as i8)),
            _ => Err("a field that must be a number is none".into()),
        }
    }

    /// A truth value, which the field's kind holds itself.
    pub(super) fn truth(kind: Kind) -> Outcome<bool> {
        match kind {
            Kind::TRUE => Ok(true),
            Kind::FALSE => Ok(false),
            _ => Err("a field that must be true or false is neither".into()),
        }
    }

    pub(super) fn text(&mut self, kind: Kind) -> Outcome<String> {
        if kind != Kind::BINARY {
            return Err("a field that must be a text is none".into());
        }
        let length = usize::try_from(self.varint()?).map_err(|_| ENDS)?;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// The structures of a list, each read by `item`.
    pub(super) fn list<T>(
        &mut self,
        kind: Kind,
        mut item: impl FnMut(&mut Cursor<'a>) -> Outcome<T>,
    ) -> Outcome<Vec<T>> {
        if kind != Kind::LIST {
            return Err("a field that must be a list is none".into());
        }
        let (count, of) = self.list_head()?;
        if of != Kind::STRUCT {
            return Err("a list that must hold structures does not".into());
        }
        // a structure is a byte at least: the count is checked by reading
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn list_head(&mut self) -> Outcome<(u64, Kind)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Ok((count, Kind(head & 15)))
    }

    /// Reads a structure: `field` is given every number with its kind, and says whether it has read the field.
    pub(super) fn structure(
        &mut self,
        mut field: impl FnMut(&mut Cursor<'a>, i16, Kind) -> Outcome<bool>,
    ) -> Outcome<()> {
        let mut last = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let kind = Kind(head & 15);
            last = match head >> 4 {
                0 => i16::try_from(self.signed()?).map_err(|_| "a field has an impossible number")?,
                step => last.checked_add(i16::from(step)).ok_or("a field has an impossible number")?,
            };
            if !field(self, last, kind)? {
                self.skip(kind, 0)?;
            }
        }
    }

    /// A field that must be a structure.
    pub(super) fn inner(
        &mut self,
        kind: Kind,
        field: impl FnMut(&mut Cursor<'a>, i16, Kind) -> Outcome<bool>,
    ) -> Outcome<()> {
        if kind != Kind::STRUCT {
            return Err("a field that must be a structure is none".into());
        }
        self.structure(field)
    }

    fn skip(&mut self, kind: Kind, depth: usize) -> Outcome<()> {
        if depth > DEEPEST {
            return Err("structures lie too deep in one another".into());
        }
        match kind {
            Kind::TRUE | Kind::FALSE => {}
            Kind::BYTE => drop(self.byte()?),
            Kind::DOUBLE => drop(self.take(8)?),
            Kind::BINARY => {
                let length = usize::try_from(self.varint()?).map_err(|_| ENDS)?;
                self.take(length)?;
            }
            Kind::LIST | Kind::SET => {
                let (count, of) = self.list_head()?;
                for _ in 0..count {
                    self.skip_item(of, depth)?;
                }
            }
            Kind::MAP => {
                let count = self.varint()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                for _ in 0..count {
                    self.skip_item(Kind(kinds >> 4), depth)?;
                    self.skip_item(Kind(kinds & 15), depth)?;
                }
            }
            Kind::STRUCT => loop {
                let head = self.byte()?;
                if head == 0 {
                    return Ok(());
                }
                if head >> 4 == 0 {
                    self.signed()?;
                }
                self.skip(Kind(head & 15), depth + 1)?;
            },
            kind if kind.is_number() => drop(self.varint()?),
            _ => return Err("a field is of an unknown kind".into()),
        }
        Ok(())
    }

    /// An element of a list: truth values have a byte of their own there.
    fn skip_item(&mut self, kind: Kind, depth: usize) -> Outcome<()> {
        match kind {
            Kind::TRUE | Kind::FALSE => self.byte().map(drop),
            kind => self.skip(kind, depth + 1),
        }
    }
}
