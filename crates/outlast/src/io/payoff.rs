//! Utility and cost matrices from CSV files.
//!
//! The first row names the classes decided for, one per column. Each further row belongs to a true class: the one its first
//! field names, if the first column holds names, else in the order of the header.
//!
//! ```text
//! true,cat,dog,"bird, small"
//! dog,0,1,0
//! cat,1,0.5,0
//! "bird, small",0,0,1
//! ```

use super::csv::{Record, Records};
use super::field::{Problem, number, quote};
use super::names::match_class;
use super::source::{Source, display_name};
use crate::data::Class;
use crate::error::{Result, quoted};
use std::io::Read;
use std::path::Path;

/// Most classes listed in a message.
const LISTED: usize = 10;

/// Reads a matrix with a row and a column per class, `what` being `"utility"` or `"cost"`, and brings it into the order of the
/// classes; `-` is standard input.
///
/// ```
/// use outlast::{Labels, io::read_payoff};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("utility.csv");
/// std::fs::write(&path, "spam,ham\n1,0\n0.2,2\n").unwrap();
/// let labels = Labels::new(["spam", "ham", "ham"]);
/// assert_eq!(read_payoff(&path, "utility", labels.classes())?, [[2.0, 0.2], [0.0, 1.0]]);
/// # Ok::<(), outlast::Error>(())
/// ```
pub fn read_payoff(path: impl AsRef<Path>, what: &str, classes: &[Class]) -> Result<Vec<Vec<f64>>> {
    read(Source::open(path.as_ref())?, what, classes, false)
}

/// Reads a cost matrix in the same way in which right decisions cost nothing, as the L_q machine wants it.
pub fn read_cost(path: impl AsRef<Path>, classes: &[Class]) -> Result<Vec<Vec<f64>>> {
    read(Source::open(path.as_ref())?, "cost", classes, true)
}

/// Reads such a matrix from memory or any other reader; `name` stands for the file in messages.
pub fn read_payoff_from(
    reader: impl Read,
    name: impl AsRef<Path>,
    what: &str,
    classes: &[Class],
) -> Result<Vec<Vec<f64>>> {
    read(Source::new(Box::new(reader), display_name(name.as_ref()))?, what, classes, false)
}

fn read(source: Source, what: &str, classes: &[Class], free: bool) -> Result<Vec<Vec<f64>>> {
    let mut records = Records::new(source, None);
    let (mut header, mut record) = (Record::default(), Record::default());
    if !records.next(&mut header)? {
        return Err(records.lines.whole("the file is empty"));
    }
    let mut more = records.next(&mut record)?;
    let named = has_row_names(&header, more.then_some(&record), classes);
    let columns = Columns { order: column_order(&header, named, classes, &records)?, named, what, free };
    let mut matrix: Vec<Option<Vec<f64>>> = vec![None; classes.len()];
    let mut count = 0;
    while more {
        let (class, values) = columns.row(&record, count, classes, &records)?;
        if matrix[class].replace(values).is_some() {
            let problem = format!("there are two rows for class {}", class_quoted(&classes[class]));
            return Err(records.lines.at(record.line, named.then_some(1), None, problem));
        }
        count += 1;
        more = records.next(&mut record)?;
    }
    let missing: Vec<&Class> = classes.iter().zip(&matrix).filter(|(_, row)| row.is_none()).map(|(c, _)| c).collect();
    if !missing.is_empty() {
        let problem = format!(
            "there are {count} rows of values for {} classes; missing: {}",
            classes.len(),
            list(missing.into_iter().map(class_quoted))
        );
        return Err(records.lines.whole(problem));
    }
    let matrix: Vec<Vec<f64>> = matrix.into_iter().flatten().collect();
    if matrix.iter().flatten().all(|&value| value == 0.0) {
        return Err(records.lines.whole(format!("every {what} is 0; at least one must be > 0")));
    }
    Ok(matrix)
}

/// Whether the first column names the true classes: its head is no class, or all the others are the classes.
fn has_row_names(header: &Record, second: Option<&Record>, classes: &[Class]) -> bool {
    let names: Vec<Option<usize>> = header.iter().map(|field| class_of(field, classes)).collect();
    let wide = names.len() == classes.len() + 1;
    let empty = header.iter().next().is_none_or(|field| field.trim_ascii().is_empty());
    let wordy = second.and_then(|second| second.iter().next()).is_some_and(|field| number(field).is_err());
    let others_are_all = || {
        let mut others: Vec<usize> = names[1..].iter().copied().flatten().collect();
        others.sort_unstable();
        others.dedup();
        wide && others.len() == classes.len()
    };
    empty || names[0].is_none() && (wide || wordy) || others_are_all()
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).trim().to_string()
}

fn class_of(field: &[u8], classes: &[Class]) -> Option<usize> {
    match_class(classes, &Class::Text(text(field)))
}

fn class_quoted(class: &Class) -> String {
    quoted(&class.to_string())
}

fn list(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let mut shown: Vec<String> = names.take(LISTED).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

/// The class of each column.
fn column_order(header: &Record, named: bool, classes: &[Class], records: &Records) -> Result<Vec<usize>> {
    let skip = usize::from(named);
    let mut seen = vec![false; classes.len()];
    let (mut order, mut unknown) = (Vec::new(), Vec::new());
    for (column, field) in header.iter().enumerate().skip(skip) {
        match class_of(field, classes) {
            Some(class) if seen[class] => {
                let problem = format!("there are two columns for class {}", class_quoted(&classes[class]));
                return Err(records.lines.at(header.line, Some(column as u64 + 1), None, problem));
            }
            Some(class) => {
                seen[class] = true;
                order.push(class);
            }
            None => unknown.push(quote(text(field).as_bytes())),
        }
    }
    let missing: Vec<String> =
        classes.iter().zip(&seen).filter(|(_, seen)| !**seen).map(|(class, _)| class_quoted(class)).collect();
    if missing.is_empty() && unknown.is_empty() {
        return Ok(order);
    }
    let mut problem = "the first row must hold the names of the classes of the data".to_string();
    for (what, names) in [("missing", missing), ("unknown", unknown)] {
        if !names.is_empty() {
            problem += &format!("; {what}: {}", list(names.into_iter()));
        }
    }
    Err(records.lines.at(header.line, None, None, problem))
}

/// What the header says about the rows below it.
struct Columns<'a> {
    order: Vec<usize>,
    named: bool,
    what: &'a str,
    /// Whether right decisions must have the value 0.
    free: bool,
}

impl Columns<'_> {
    /// The true class of a row, and its values in the order of the classes.
    fn row(&self, record: &Record, at: usize, classes: &[Class], records: &Records) -> Result<(usize, Vec<f64>)> {
        let skip = usize::from(self.named);
        let refuse = |column: Option<usize>, name: Option<String>, problem: Problem| -> Result<(usize, Vec<f64>)> {
            Err(records.lines.at(record.line, column.map(|column| column as u64 + 1), name, problem))
        };
        let (found, wanted) = (record.fields.len(), self.order.len() + skip);
        if found != wanted {
            return refuse(None, None, format!("the row has {found} fields, but the first row has {wanted}").into());
        }
        let class = match (self.named, record.iter().next()) {
            (true, Some(field)) => match class_of(field, classes) {
                Some(class) => class,
                None => {
                    let problem = format!("{} is no class of the data", quote(text(field).as_bytes()));
                    return refuse(Some(0), None, problem.into());
                }
            },
            _ if at >= self.order.len() => {
                let problem = format!("there are more rows than the {} classes", classes.len());
                return refuse(None, None, problem.into());
            }
            _ => self.order[at],
        };
        let mut values = vec![0.0; classes.len()];
        for (column, (field, &to)) in record.iter().skip(skip).zip(&self.order).enumerate() {
            let value = match number(field) {
                Ok(value) if value < 0.0 => {
                    Err(format!("{value} is negative; every {} must be >= 0", self.what).into())
                }
                Ok(value) if self.free && to == class && value != 0.0 => {
                    Err(format!("{value:?} for a right decision, which must cost 0").into())
                }
                outcome => outcome,
            };
            match value {
                // a minus sign before a zero says nothing
                Ok(value) => values[to] = value.abs(),
                Err(problem) => return refuse(Some(column + skip), Some(classes[to].to_string()), problem),
            }
        }
        Ok((class, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Labels;
    use crate::error::Error;

    fn matrix(content: &str, classes: &[&str]) -> std::result::Result<Vec<Vec<f64>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.csv");
        std::fs::write(&path, content).unwrap();
        let labels = Labels::new(classes.iter().copied());
        let shown = |error: Error| error.to_string().rsplit_once("u.csv").unwrap().1.to_string();
        read_payoff(&path, "utility", labels.classes()).map_err(shown)
    }

    const SORTED: [[f64; 3]; 3] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]];

    #[test]
    fn classes_go_by_name_in_any_order() {
        for text in [
            "a,b,c\n1,2,3\n4,5,6\n7,8,9\n",
            "c,a,b\n9,7,8\n3,1,2\n6,4,5\n",
            ",c,a,b\nb,6,4,5\nc,9,7,8\na,3,1,2\n",
            "true;a;\"b\";c\r\na;1;2;3\r\n\r\nc;7;8;9\r\nb;4;5;6",
            "a,a,b,c\nb,4,5,6\na,1,2,3\nc,7,8,9\n",
        ] {
            assert_eq!(matrix(text, &["b", "c", "a"]).unwrap(), SORTED, "{text}");
        }
        let odd = matrix("\"x, y\",\"say \"\"z\"\"\"\n1,0\n0.5,2\n", &["x, y", "say \"z\""]).unwrap();
        assert_eq!(odd, [[2.0, 0.5], [0.0, 1.0]]);
    }

    #[test]
    fn numbers_are_classes_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.csv");
        let labels = Labels::new([-1, 1]);
        for text in ["1,-1\n4,3\n2,1\n", ",-1,+1.0\n-1,1,2\n1,3,4\n", "true,-1,1\n1,3,4\n-1,1,2\n"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read_payoff(&path, "cost", labels.classes()).unwrap(), [[1.0, 2.0], [3.0, 4.0]], "{text}");
        }
    }

    #[test]
    fn refusals_name_the_place() {
        for (text, message) in [
            ("", ": the file is empty"),
            ("a,b,c\n", ": there are 0 rows of values for 3 classes; missing: \"a\", \"b\", \"c\""),
            ("a,b,c\n1,0,0\n0,1,0\n", ": there are 2 rows of values for 3 classes; missing: \"c\""),
            ("a,b,c\n1,0,0\n0,1,0\n0,0,1\n0,0,1\n", ", line 5: there are more rows than the 3 classes"),
            ("a,b,c\n1,0,0\n0,1\n", ", line 3: the row has 2 fields, but the first row has 3"),
            ("a,b,c\n1,0,0\n0,1,-2\n", ", line 3, column 3 (\"c\"): -2 is negative; every utility must be >= 0"),
            ("a,b,c\n1,0,x\n", ", line 2, column 3 (\"c\"): \"x\" is not a number"),
            ("a,b,c\n1,0,nan\n", ", line 2, column 3 (\"c\"): the value is missing"),
            ("a,b,c\n1,inf,0\n", ", line 2, column 2 (\"b\"): \"inf\" is infinite"),
            ("a,b,c\n0,0,0\n0,0,-0\n0,0,0\n", ": every utility is 0; at least one must be > 0"),
            (
                "a,b\n1,0\n0,1\n",
                ", line 1: the first row must hold the names of the classes of the data; missing: \"c\"",
            ),
            ("a,b,d\n1,0,0\n", "; missing: \"c\"; unknown: \"d\""),
            ("1,0,0\n0,1,0\n0,0,1\n", "; missing: \"a\", \"b\", \"c\"; unknown: \"1\", \"0\", \"0\""),
            ("a,b,b\n1,0,0\n", ", line 1, column 3: there are two columns for class \"b\""),
            (",a,b,c\na,1,0,0\na,1,0,0\n", ", line 3, column 1: there are two rows for class \"a\""),
            (",a,b,c\na,1,0,0\nd,1,0,0\n", ", line 3, column 1: \"d\" is no class of the data"),
            ("a,b,c\n1,\"0", "a quote is opened"),
        ] {
            let found = matrix(text, &["a", "b", "c"]).unwrap_err();
            assert!(found.contains(message), "{text:?}: {found}");
        }
        let many: Vec<String> = (0..100).map(|class| format!("class {class}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let found = matrix("x,y\n1,2\n", &many).unwrap_err();
        assert!(found.contains("90 more") && found.len() < 500, "{found}");
    }
}
