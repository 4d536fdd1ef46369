//! The footer: which columns there are, of which kind, and where their bytes lie. Everything it claims is held against the length of
//! the file before anything is read there.

use super::thrift::Cursor;
use super::{Bytes, Outcome};

/// Length of the footer and the magic number at the end of the file.
const TAIL: u64 = 8;
const MAGIC: &[u8; 4] = b"PAR1";

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Physical {
    Bool,
    Int32,
    Int64,
    Float,
    Double,
    Text,
    /// So many bytes each.
    Fixed(usize),
    /// Times of an older kind.
    Int96,
}

/// What a column's values mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    Bool,
    Signed,
    Unsigned,
    Float,
    Text,
    /// No numbers and no labels: what it is, in words.
    Refused(String),
}

/// A top-level column.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub name: String,
    pub physical: Physical,
    pub meaning: Meaning,
    /// Whether values may be missing.
    pub optional: bool,
    /// Its number among all columns that hold values.
    pub leaf: usize,
}

/// Where the pages of a column in a row group lie.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub start: u64,
    pub length: u64,
    pub codec: i64,
}

/// Rows that are stored together, column by column.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub rows: u64,
    pub chunks: Vec<Chunk>,
}

/// All of the footer that counts.
#[derive(Debug, Clone)]
pub(super) struct Footer {
    pub fields: Vec<Field>,
    pub groups: Vec<Group>,
    pub rows: u64,
}

/// Reads and checks the footer.
pub(super) fn read(file: &Bytes) -> Outcome<Footer> {
    let length = file.length;
    if length < 4 + TAIL {
        return Err("the file is too short for a Parquet file: it is truncated".into());
    }
    let tail = file.read(length - TAIL, TAIL)?;
    if &tail[4..] == b"PARE" {
        return Err("the file is encrypted; write it again without encryption".into());
    }
    if &tail[4..] != MAGIC {
        return Err("the file does not end as a Parquet file does: it is truncated or damaged".into());
    }
    let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if size > length - 4 - TAIL {
        return Err(format!("its footer claims {size} bytes, more than the file has: it is damaged").into());
    }
    let end = length - TAIL - size;
    let bytes = file.read(end, size)?;
    let raw = raw_footer(&mut Cursor::new(&bytes)).map_err(|problem| problem.within("its footer is damaged"))?;
    check(raw, end)
}

/// An element of the schema.
#[derive(Default)]
struct Element {
    physical: Option<i64>,
    length: i64,
    repetition: i64,
    name: String,
    children: i64,
    converted: Option<i64>,
    /// Number of the logical type's case, and for whole numbers whether they are signed.
    logical: Option<(i16, bool)>,
}

#[derive(Default)]
struct RawChunk {
    elsewhere: bool,
    encrypted: bool,
    codec: i64,
    values: i64,
    length: i64,
    data: i64,
    dictionary: i64,
}

#[derive(Default)]
struct RawFooter {
    schema: Vec<Element>,
    rows: i64,
    groups: Vec<(Vec<RawChunk>, i64)>,
}

fn raw_footer(cursor: &mut Cursor) -> Outcome<RawFooter> {
    let mut footer = RawFooter::default();
    cursor.structure(|cursor, number, kind| {
        match number {
            2 => footer.schema = cursor.list(kind, element)?,
            3 => footer.rows = cursor.number(kind)?,
            4 => footer.groups = cursor.list(kind, group)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(footer)
}

fn element(cursor: &mut Cursor) -> Outcome<Element> {
    let mut element = Element::default();
    cursor.structure(|cursor, number, kind| {
        match number {
            1 => element.physical = Some(cursor.number(kind)?),
            2 => element.length = cursor.number(kind)?,
            3 => element.repetition = cursor.number(kind)?,
            4 => element.name = cursor.text(kind)?,
            5 => element.children = cursor.number(kind)?,
            6 => element.converted = Some(cursor.number(kind)?),
            10 => cursor.inner(kind, |cursor, case, kind| {
                element.logical = Some((case, true));
                if case != 10 {
                    return Ok(false);
                }
                cursor.inner(kind, |_, number, kind| {
                    if number != 2 {
                        return Ok(false);
                    }
                    element.logical = Some((case, Cursor::truth(kind)?));
                    Ok(true)
                })?;
                Ok(true)
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(element)
}

fn group(cursor: &mut Cursor) -> Outcome<(Vec<RawChunk>, i64)> {
    let (mut chunks, mut rows) = (Vec::new(), 0);
    cursor.structure(|cursor, number, kind| {
        match number {
            1 => chunks = cursor.list(kind, chunk)?,
            3 => rows = cursor.number(kind)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((chunks, rows))
}

fn chunk(cursor: &mut Cursor) -> Outcome<RawChunk> {
    let mut chunk = RawChunk::default();
    cursor.structure(|cursor, number, kind| {
        match number {
            1 => chunk.elsewhere = !cursor.text(kind)?.is_empty(),
            3 => cursor.inner(kind, |cursor, number, kind| {
                match number {
                    4 => chunk.codec = cursor.number(kind)?,
                    5 => chunk.values = cursor.number(kind)?,
                    7 => chunk.length = cursor.number(kind)?,
                    9 => chunk.data = cursor.number(kind)?,
                    11 => chunk.dictionary = cursor.number(kind)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?,
            8 => {
                chunk.encrypted = true;
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(chunk)
}

/// Holds the claims of a footer against each other and against the bytes before it.
fn check(raw: RawFooter, end: u64) -> Outcome<Footer> {
    let (fields, leaves) = fields(&raw.schema)?;
    let mut flat = vec![false; leaves];
    fields.iter().filter(|field| !nested(field)).for_each(|field| flat[field.leaf] = true);
    let mut groups = Vec::new();
    let mut total = 0u64;
    for (chunks, rows) in raw.groups {
        let rows = u64::try_from(rows).map_err(|_| "a row group has a negative number of rows")?;
        total = total.checked_add(rows).ok_or("the row groups have an impossible number of rows")?;
        if chunks.len() != leaves {
            return Err(format!("a row group has {} columns, but the schema has {leaves}", chunks.len()).into());
        }
        let mut checked = Vec::new();
        for (leaf, chunk) in chunks.into_iter().enumerate() {
            checked.push(place(chunk, flat[leaf].then_some(rows), end)?);
        }
        groups.push(Group { rows, chunks: checked });
    }
    if u64::try_from(raw.rows) != Ok(total) {
        return Err(format!("the footer claims {} rows, but the row groups have {total}", raw.rows).into());
    }
    Ok(Footer { fields, groups, rows: total })
}

fn nested(field: &Field) -> bool {
    matches!(&field.meaning, Meaning::Refused(what) if what == NESTED)
}

fn place(chunk: RawChunk, rows: Option<u64>, end: u64) -> Outcome<Chunk> {
    if chunk.elsewhere {
        return Err("some columns lie in other files; write the table to one file".into());
    }
    if chunk.encrypted {
        return Err("some columns are encrypted; write the file again without encryption".into());
    }
    if let Some(rows) = rows
        && u64::try_from(chunk.values) != Ok(rows)
    {
        return Err(format!("a column has {} values in a row group of {rows} rows", chunk.values).into());
    }
    if rows == Some(0) {
        return Ok(Chunk { start: 4, length: 0, codec: chunk.codec });
    }
    let start = if chunk.dictionary > 0 { chunk.data.min(chunk.dictionary) } else { chunk.data };
    let inside = |start: u64, length: u64| start >= 4 && start.checked_add(length).is_some_and(|last| last <= end);
    match (u64::try_from(start), u64::try_from(chunk.length)) {
        (Ok(start), Ok(length)) if inside(start, length) => Ok(Chunk { start, length, codec: chunk.codec }),
        _ => Err("a column is said to lie outside the file: the footer is damaged or the file is truncated".into()),
    }
}

const NESTED: &str = "is nested (a list, a map or a struct), not a plain column";

/// The top-level columns, and how many columns hold values in all.
fn fields(schema: &[Element]) -> Outcome<(Vec<Field>, usize)> {
    let root = schema.first().ok_or("the footer has no schema")?;
    let (mut fields, mut leaves, mut at) = (Vec::new(), 0, 1);
    for _ in 0..root.children.max(0) {
        let element = schema.get(at).ok_or("the schema ends too early")?;
        let first = leaves;
        at = leaves_below(schema, at, &mut leaves)?;
        let single = element.children <= 0 && element.repetition != 2;
        let meaning = if single { meaning(element) } else { Meaning::Refused(NESTED.to_string()) };
        fields.push(Field {
            name: element.name.clone(),
            physical: physical(element, single)?,
            meaning,
            optional: element.repetition == 1,
            leaf: first,
        });
    }
    if at != schema.len() || leaves > schema.len() {
        return Err("the schema has more elements than its root says".into());
    }
    Ok((fields, leaves))
}

/// Counts the columns below an element, depth first; returns where the next one is.
fn leaves_below(schema: &[Element], at: usize, leaves: &mut usize) -> Outcome<usize> {
    // elements still to come; each is looked at once
    let (mut open, mut at) = (1u64, at);
    while open > 0 {
        let element = schema.get(at).ok_or("the schema ends too early")?;
        at += 1;
        open -= 1;
        match u64::try_from(element.children) {
            Ok(children) if children > 0 => {
                open = open.checked_add(children).ok_or("an element has too many children")?;
            }
            _ => *leaves += 1,
        }
    }
    Ok(at)
}

fn physical(element: &Element, single: bool) -> Outcome<Physical> {
    match element.physical {
        Some(0) => Ok(Physical::Bool),
        Some(1) => Ok(Physical::Int32),
        Some(2) => Ok(Physical::Int64),
        Some(3) => Ok(Physical::Int96),
        Some(4) => Ok(Physical::Float),
        Some(5) => Ok(Physical::Double),
        Some(6) => Ok(Physical::Text),
        Some(7) => match usize::try_from(element.length) {
            Ok(length) if length > 0 && length <= 1 << 16 => Ok(Physical::Fixed(length)),
            _ => Err(format!("a column has values of {} bytes", element.length).into()),
        },
        // a group has no type of its own
        None if !single => Ok(Physical::Text),
        _ => Err("a column is of an unknown type".into()),
    }
}

fn meaning(element: &Element) -> Meaning {
    let refused = |what: &str| Meaning::Refused(format!("holds {what}, which are no plain numbers"));
    match element.logical {
        Some((5, _)) => return refused("decimals"),
        Some((6, _)) => return refused("dates"),
        Some((7, _)) => return refused("times"),
        Some((8, _)) => return refused("timestamps"),
        Some((10, false)) => return Meaning::Unsigned,
        Some((12, _)) => return refused("JSON"),
        Some((13, _)) => return refused("BSON"),
        Some((14, _)) => return refused("UUIDs"),
        Some((15, _)) => return Meaning::Float,
        _ => {}
    }
    match element.converted {
        Some(5) => return refused("decimals"),
        Some(6) => return refused("dates"),
        Some(7 | 8) => return refused("times"),
        Some(9 | 10) => return refused("timestamps"),
        Some(11..=14) => return Meaning::Unsigned,
        Some(19) => return refused("JSON"),
        Some(20) => return refused("BSON"),
        Some(21) => return refused("intervals"),
        _ => {}
    }
    match element.physical {
        Some(0) => Meaning::Bool,
        Some(1 | 2) => Meaning::Signed,
        Some(3) => refused("timestamps"),
        Some(4 | 5) => Meaning::Float,
        Some(6) => Meaning::Text,
        _ => refused("raw bytes of fixed length"),
    }
}
