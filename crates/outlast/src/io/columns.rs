//! Which column of a CSV file plays which part.

use super::field::{Problem, quote};
use super::table::{ReadOptions, TargetColumn};
use crate::error::ParseKind;
use std::collections::{HashMap, HashSet};

/// Names a target column usually has.
pub(super) const TARGET_NAMES: [&str; 4] = ["label", "target", "class", "y"];

/// What a model expects of a file.
pub(super) struct Expected<'a> {
    pub features: usize,
    pub names: Option<&'a [String]>,
    /// Whether labels are wanted.
    pub labels: bool,
}

/// The part a column plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The feature at that position.
    Feature(usize),
    Target,
    Weight,
    Ignored,
}

/// The parts of all columns.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    pub roles: Vec<Role>,
    pub features: usize,
    pub names: Option<Vec<String>>,
}

impl Plan {
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

/// The columns of a file as its first row shows them.
pub(super) struct Columns<'a> {
    pub count: usize,
    pub header: Option<&'a [String]>,
}

type Outcome<T> = Result<T, Problem>;

/// What the caller said about single columns, as positions.
struct Wishes {
    /// The target, where it was named.
    target: Option<usize>,
    weight: Option<usize>,
    ignored: HashSet<usize>,
}

impl Wishes {
    /// Whether a column may be a feature or the target.
    fn leave(&self, column: usize) -> bool {
        Some(column) != self.weight && !self.ignored.contains(&column)
    }
}

impl Columns<'_> {
    /// Assigns the parts, or says why that can't be done.
    pub fn plan(&self, options: &ReadOptions, expected: Option<&Expected>) -> Outcome<Plan> {
        self.check_names()?;
        let wishes = self.wishes(options)?;
        match expected {
            None => self.for_training(options, &wishes),
            Some(expected) => match (self.header, expected.names) {
                (Some(header), Some(names)) => self.by_name(header, names, options, expected, &wishes),
                _ => self.by_position(options, expected, &wishes),
            },
        }
    }

    fn wishes(&self, options: &ReadOptions) -> Outcome<Wishes> {
        let weight = options.weight_column.as_deref().map(|column| self.find(column, "weight column")).transpose()?;
        let target = match &options.target {
            TargetColumn::Given(column) => Some(self.find(column, "target column")?),
            _ => None,
        };
        let ignored: HashSet<usize> =
            options.ignore.iter().map(|column| self.find(column, "column to ignore")).collect::<Outcome<_>>()?;
        if target.is_some() && target == weight {
            return Err("one column can't be both the target and the weights".into());
        }
        for (column, what) in [(target, "the target"), (weight, "the weights")] {
            if column.is_some_and(|column| ignored.contains(&column)) {
                return Err(format!("one column can't be {what} and ignored").into());
            }
        }
        Ok(Wishes { target, weight, ignored })
    }

    fn for_training(&self, options: &ReadOptions, wishes: &Wishes) -> Outcome<Plan> {
        let target = match options.target {
            TargetColumn::Absent => None,
            _ => wishes.target.or_else(|| self.usual_or_last(wishes)),
        };
        let plan = self.in_order(target, wishes);
        if plan.features == 0 {
            let why = match self.count {
                1 => "the only column is the target".to_string(),
                count => format!("none of the {count} columns is left for one"),
            };
            return Err(format!("there is no feature column: {why}; is the delimiter another one?").into());
        }
        Ok(plan)
    }

    fn by_name(
        &self,
        header: &[String],
        names: &[String],
        options: &ReadOptions,
        expected: &Expected,
        wishes: &Wishes,
    ) -> Outcome<Plan> {
        let column_of: HashMap<&str, usize> = header.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let mut roles = vec![Role::Ignored; self.count];
        let mut missing = Vec::new();
        for (position, name) in names.iter().enumerate() {
            match column_of.get(name.as_str()) {
                Some(&column) if wishes.ignored.contains(&column) => {
                    return Err(
                        format!("column {} can't be ignored: the model needs it", quote(name.as_bytes())).into()
                    );
                }
                Some(&column) if roles[column] != Role::Ignored => {
                    let name = quote(name.as_bytes());
                    return Err(format!(
                        "the model has two features named {name}, so columns can't be told by name; give the data \
                         without a header, in the order of the training data"
                    )
                    .into());
                }
                Some(&column) => roles[column] = Role::Feature(position),
                None => missing.push(quote(name.as_bytes())),
            }
        }
        if let Some(first) = missing.first() {
            let more = if missing.len() > 1 { format!(" (nor {} more)", missing.len() - 1) } else { String::new() };
            return Err(format!("there is no column {first}{more}, which the model needs").into());
        }
        let free = |column: usize| roles[column] == Role::Ignored && wishes.leave(column);
        let target = match options.target {
            TargetColumn::Absent => None,
            TargetColumn::Given(_) => wishes.target,
            TargetColumn::Auto => self.usual_target(free).or_else(|| {
                let mut left = (0..self.count).filter(|&column| free(column));
                left.next().filter(|_| left.next().is_none())
            }),
        };
        for (column, what) in [(target, "target"), (wishes.weight, "weights")] {
            if let Some(column) = column
                && let Role::Feature(_) = roles[column]
            {
                let name = quote(header[column].as_bytes());
                return Err(format!("column {name} can't be the {what}: the model uses it as a feature").into());
            }
        }
        if let Some(weight) = wishes.weight {
            roles[weight] = Role::Weight;
        }
        self.set_target(&mut roles, target, expected)?;
        Ok(Plan { roles, features: names.len(), names: Some(names.to_vec()) })
    }

    fn by_position(&self, options: &ReadOptions, expected: &Expected, wishes: &Wishes) -> Outcome<Plan> {
        let others = (0..self.count).filter(|&column| wishes.leave(column)).count();
        let target = match options.target {
            TargetColumn::Absent => None,
            TargetColumn::Given(_) => wishes.target,
            TargetColumn::Auto if others == expected.features + 1 => self.usual_or_last(wishes),
            TargetColumn::Auto => None,
        };
        let mut plan = self.in_order(target, wishes);
        if plan.features != expected.features {
            let beside = match (target, wishes.weight) {
                (None, None) => "",
                (Some(_), None) => " beside the target",
                (None, Some(_)) => " beside the weights",
                (Some(_), Some(_)) => " beside target and weights",
            };
            let (found, wanted) = (plan.features, expected.features);
            return Err(format!("there are {found} columns{beside}, but the model has {wanted} features").into());
        }
        self.set_target(&mut plan.roles, target, expected)?;
        Ok(plan)
    }

    fn set_target(&self, roles: &mut [Role], target: Option<usize>, expected: &Expected) -> Outcome<()> {
        match target {
            Some(column) => roles[column] = if expected.labels { Role::Target } else { Role::Ignored },
            None if expected.labels => {
                return Err(Problem::new(ParseKind::NoTarget, "there is no target column; say which one it is"));
            }
            None => {}
        }
        Ok(())
    }

    /// Every column that nobody has a wish for is a feature, in order.
    fn in_order(&self, target: Option<usize>, wishes: &Wishes) -> Plan {
        let mut features = 0;
        let roles = (0..self.count).map(|column| match Some(column) {
            found if found == target => Role::Target,
            found if found == wishes.weight => Role::Weight,
            _ if wishes.ignored.contains(&column) => Role::Ignored,
            _ => {
                features += 1;
                Role::Feature(features - 1)
            }
        });
        let roles: Vec<Role> = roles.collect();
        let names = self.header.map(|header| {
            let feature = roles.iter().zip(header).filter(|(role, _)| matches!(role, Role::Feature(_)));
            feature.map(|(_, name)| name.clone()).collect()
        });
        Plan { roles, features, names }
    }

    /// The only column with a usual name among those that may be taken.
    fn usual_target(&self, free: impl Fn(usize) -> bool) -> Option<usize> {
        let header = self.header?;
        let mut usual = (0..self.count).filter(|&column| free(column) && is_target_name(&header[column]));
        usual.next().filter(|_| usual.next().is_none())
    }

    /// The rule of [`TargetColumn::Auto`] where every column counts.
    fn usual_or_last(&self, wishes: &Wishes) -> Option<usize> {
        let last = || (0..self.count).rev().find(|&column| wishes.leave(column));
        self.usual_target(|column| wishes.leave(column)).or_else(last)
    }

    /// A column by name, else by number.
    fn find(&self, wanted: &str, what: &str) -> Outcome<usize> {
        if let Some(column) = self.header.and_then(|header| header.iter().position(|name| name == wanted.trim())) {
            return Ok(column);
        }
        let shown = quote(wanted.as_bytes());
        let Ok(number) = wanted.trim().parse::<i64>() else {
            return Err(match self.header {
                Some(header) => format!("there is no {what} {shown}; the columns are {}", some_of(header)),
                None => format!("there is no {what} {shown}: the file has no header, so columns go by number"),
            }
            .into());
        };
        let count = self.count as i64;
        if (1..=count).contains(&number) {
            Ok((number - 1) as usize)
        } else if (-count..=-1).contains(&number) {
            Ok((count + number) as usize)
        } else {
            Err(format!("there is no {what} {number}: columns go from 1 to {count}, or from -1 back to -{count}")
                .into())
        }
    }

    fn check_names(&self) -> Outcome<()> {
        let mut seen = HashMap::new();
        for (column, name) in self.header.unwrap_or_default().iter().enumerate() {
            if let Some(earlier) = seen.insert(name, column) {
                let (name, first, second) = (quote(name.as_bytes()), earlier + 1, column + 1);
                return Err(format!("columns {first} and {second} are both named {name}").into());
            }
        }
        Ok(())
    }
}

/// Whether a column of that name usually holds the labels.
pub(super) fn is_target_name(name: &str) -> bool {
    TARGET_NAMES.iter().any(|usual| name.eq_ignore_ascii_case(usual))
}

fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut list: Vec<String> = names.iter().take(SHOWN).map(|name| quote(name.as_bytes())).collect();
    if names.len() > SHOWN {
        list.push(format!("and {} more", names.len() - SHOWN));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::*;

    fn names(header: &[&str]) -> Vec<String> {
        header.iter().map(|name| name.to_string()).collect()
    }

    fn target(column: &str) -> ReadOptions {
        ReadOptions { target: TargetColumn::Given(column.to_string()), ..Default::default() }
    }

    fn roles(header: &[&str], options: &ReadOptions, expected: Option<&Expected>) -> Outcome<Vec<Role>> {
        let header = names(header);
        let columns = Columns { count: header.len(), header: Some(&header) };
        columns.plan(options, expected).map(|plan| plan.roles)
    }

    #[test]
    fn the_target_is_found_by_usual_name_given_name_number_or_place() {
        let auto = ReadOptions::default();
        assert_eq!(roles(&["a", "Class", "b"], &auto, None).unwrap(), [Feature(0), Target, Feature(1)]);
        assert_eq!(roles(&["a", "class", "y"], &auto, None).unwrap(), [Feature(0), Feature(1), Target]);
        assert_eq!(roles(&["a", "b", "c"], &target("a"), None).unwrap(), [Target, Feature(0), Feature(1)]);
        assert_eq!(roles(&["a", "b", "c"], &target("2"), None).unwrap(), [Feature(0), Target, Feature(1)]);
        assert_eq!(roles(&["2", "b", "c"], &target("2"), None).unwrap(), [Target, Feature(0), Feature(1)]);
        assert_eq!(roles(&["a", "b", "c"], &target("-3"), None).unwrap(), [Target, Feature(0), Feature(1)]);
        let absent = ReadOptions { target: TargetColumn::Absent, ..Default::default() };
        assert_eq!(roles(&["a", "y"], &absent, None).unwrap(), [Feature(0), Feature(1)]);
        let weighted = ReadOptions { weight_column: Some("w".into()), ..Default::default() };
        assert_eq!(roles(&["a", "b", "w"], &weighted, None).unwrap(), [Feature(0), Target, Weight]);
    }

    #[test]
    fn impossible_wishes_are_refused() {
        for column in ["0", "4", "-4", "d", ""] {
            assert!(
                roles(&["a", "b", "c"], &target(column), None).unwrap_err().text.contains("target column"),
                "{column}"
            );
        }
        assert!(roles(&["a", "b", "a"], &ReadOptions::default(), None).unwrap_err().text.contains("1 and 3"));
        assert!(roles(&["y"], &ReadOptions::default(), None).unwrap_err().text.contains("no feature"));
        let both = ReadOptions { weight_column: Some("b".into()), ..target("b") };
        assert!(roles(&["a", "b"], &both, None).unwrap_err().text.contains("both"));
    }

    #[test]
    fn a_model_takes_its_features_by_name() {
        let known = names(&["a", "b"]);
        let expected = |labels| Expected { features: 2, names: Some(&known), labels };
        let auto = ReadOptions::default();
        assert_eq!(roles(&["b", "x", "a"], &auto, Some(&expected(true))).unwrap(), [Feature(1), Target, Feature(0)]);
        assert_eq!(roles(&["b", "x", "a"], &auto, Some(&expected(false))).unwrap(), [Feature(1), Ignored, Feature(0)]);
        let found = roles(&["b", "id", "y", "a"], &auto, Some(&expected(true))).unwrap();
        assert_eq!(found, [Feature(1), Ignored, Target, Feature(0)]);
        assert!(roles(&["b", "x"], &auto, Some(&expected(false))).unwrap_err().text.contains("no column \"a\""));
        assert!(roles(&["b", "a"], &auto, Some(&expected(true))).unwrap_err().text.contains("no target"));
        assert!(roles(&["b", "a"], &target("a"), Some(&expected(true))).unwrap_err().text.contains("as a feature"));
    }

    #[test]
    fn a_model_without_names_takes_them_by_position() {
        let expected = |labels| Expected { features: 2, names: None, labels };
        let plain = |count: usize, options: &ReadOptions, labels: bool| {
            Columns { count, header: None }.plan(options, Some(&expected(labels))).map(|plan| plan.roles)
        };
        let auto = ReadOptions::default();
        assert_eq!(plain(3, &auto, true).unwrap(), [Feature(0), Feature(1), Target]);
        assert_eq!(plain(3, &target("1"), true).unwrap(), [Target, Feature(0), Feature(1)]);
        assert_eq!(plain(2, &auto, false).unwrap(), [Feature(0), Feature(1)]);
        assert!(plain(2, &auto, true).unwrap_err().text.contains("no target"));
        assert!(plain(4, &auto, false).unwrap_err().text.contains("4 columns, but the model has 2"));
        assert!(plain(2, &target("1"), true).unwrap_err().text.contains("beside the target"));
    }

    #[test]
    fn ignored_columns_are_no_features_and_no_target() {
        let ignoring = |columns: &[&str]| ReadOptions { ignore: names(columns), ..Default::default() };
        assert_eq!(roles(&["id", "a", "b"], &ignoring(&["id"]), None).unwrap(), [Ignored, Feature(0), Target]);
        assert!(roles(&["a", "b", "c"], &ignoring(&["-1", "1"]), None).unwrap_err().text.contains("no feature column"));
        assert_eq!(roles(&["a", "b", "c"], &ignoring(&["-1"]), None).unwrap(), [Feature(0), Target, Ignored]);
        assert!(roles(&["a", "b"], &ignoring(&["c"]), None).unwrap_err().text.contains("column to ignore \"c\""));
        let both = ReadOptions { ignore: names(&["b"]), ..target("b") };
        assert!(roles(&["a", "b"], &both, None).unwrap_err().text.contains("the target and ignored"));
        let known = names(&["a", "b"]);
        let expected = Expected { features: 2, names: Some(&known), labels: true };
        let found = roles(&["b", "id", "x", "a"], &ignoring(&["id"]), Some(&expected)).unwrap();
        assert_eq!(found, [Feature(1), Ignored, Target, Feature(0)]);
        assert!(roles(&["b", "a", "y"], &ignoring(&["a"]), Some(&expected)).unwrap_err().text.contains("needs it"));
        let plain = Expected { features: 2, names: None, labels: true };
        let columns = Columns { count: 4, header: None };
        let found = columns.plan(&ignoring(&["1"]), Some(&plain)).unwrap().roles;
        assert_eq!(found, [Ignored, Feature(0), Feature(1), Target]);
    }

    #[test]
    fn features_of_one_name_are_not_told_by_name() {
        let known = names(&["a", "b", "a"]);
        let expected = Expected { features: 3, names: Some(&known), labels: false };
        let refused = roles(&["a", "b", "c"], &ReadOptions::default(), Some(&expected)).unwrap_err();
        assert!(refused.text.contains("two features named \"a\""), "{refused:?}");
        let columns = Columns { count: 3, header: None };
        assert!(columns.plan(&ReadOptions::default(), Some(&expected)).is_ok());
    }
}
