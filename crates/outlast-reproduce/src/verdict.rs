//! The one rule by which printed numbers and statements are judged.
//!
//! ```text
//! agrees   |printed - here| <= 2 sqrt(error_printed^2 + error_here^2) + rounding
//! differs  otherwise
//! ```
//!
//! `error_here` is the standard error of our mean over the replications run. `error_printed` is the paper's standard error: its standard
//! deviation over the root of its replications, or what it prints as such. Where the paper prints neither, the table says so, and our
//! standard deviation over the root of the paper's replications stands in. `rounding` is half a unit of the last printed digit. With
//! fewer than two replications here, or where nothing varied that could stand in, there is no verdict, unless the two are the same up to the rounding.
//!
//! A statement of the paper is judged by the same two standard errors: that something is more or less, by paired differences, replication by
//! replication, positive as stated; that there is no difference, by the same differences as a printed mean of 0. What is stated of all or none
//! is checked in every replication ([`Statement`](crate::Statement)).

/// Joint standard errors that count as agreement.
const ERRORS: f64 = 2.0;

/// A number as a paper prints it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed {
    value: f64,
    /// Half a unit of the last digit.
    rounding: f64,
    spread: Spread,
    reps: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Spread {
    None,
    Deviation(f64),
    Error(f64),
}

impl Printed {
    /// A mean over so many replications, as printed: the text tells its rounding. Of what is not random, `reps` is 0.
    pub fn new(text: &str, reps: usize) -> Printed {
        let decimals = text.split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
        Printed { value: number(text), rounding: 0.5 * 10f64.powi(-decimals), spread: Spread::None, reps }
    }

    /// With the standard deviation over the replications.
    pub fn deviation(self, text: &str) -> Printed {
        Printed { spread: Spread::Deviation(number(text)), ..self }
    }

    /// With the standard error of the mean.
    pub fn error(self, text: &str) -> Printed {
        Printed { spread: Spread::Error(number(text)), ..self }
    }

    /// The number.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Its standard error; our deviation stands in where the paper has none.
    fn standard_error(&self, here: &Sample) -> f64 {
        let root = (self.reps.max(1) as f64).sqrt();
        match self.spread {
            Spread::Error(error) => error,
            Spread::Deviation(deviation) => deviation / root,
            Spread::None if self.reps == 0 => 0.0,
            Spread::None => here.deviation() / root,
        }
    }

    /// Whether it is a mean over chance.
    fn is_random(&self) -> bool {
        self.reps > 0
    }

    fn decimals(&self) -> usize {
        (-(2.0 * self.rounding).log10()).round().max(0.0) as usize
    }

    pub(crate) fn text(&self) -> String {
        let value = format!("{:.*}", self.decimals(), self.value);
        match self.spread {
            Spread::Error(error) => format!("{value} (se {error})"),
            Spread::Deviation(deviation) => format!("{value} (sd {deviation})"),
            Spread::None if self.reps == 0 => value,
            Spread::None => format!("{value} (no sd printed)"),
        }
    }
}

/// A printed number in the source of an experiment.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// The mean of a list of numbers and what it takes to judge it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The mean; NaN of nothing.
    pub mean: f64,
    /// Its standard error; NaN of fewer than two.
    pub error: f64,
    /// How many.
    pub count: usize,
}

impl Sample {
    /// Of some numbers.
    pub fn of(values: &[f64]) -> Sample {
        if let [first, _, ..] = values
            && values.iter().all(|value| value == first)
        {
            // not what rounding makes of the mean
            return Sample { mean: *first, error: 0.0, count: values.len() };
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = if values.len() < 2 { f64::NAN } else { (squares / (n - 1.0) / n).sqrt() };
        Sample { mean, error, count: values.len() }
    }

    /// A number without chance.
    pub fn exact(value: f64) -> Sample {
        Sample { mean: value, error: 0.0, count: 1 }
    }

    fn deviation(&self) -> f64 {
        self.error * (self.count as f64).sqrt()
    }
}

/// What is said of a printed number or a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Within two joint standard errors plus rounding.
    Agrees,
    /// Further off; by how many joint standard errors, above or below.
    Differs(f64),
    /// A statement that holds.
    Holds,
    /// A statement that does not hold.
    Fails,
    /// The replications can't tell.
    Open,
    /// Nothing varied: neither the paper nor the replications say how much would be chance.
    NoSpread,
    /// Nothing printed to compare with.
    NotPrinted,
}

impl Verdict {
    /// The rule.
    pub fn of(printed: Option<&Printed>, here: &Sample) -> Verdict {
        let Some(printed) = printed else { return Verdict::NotPrinted };
        let joint = printed.standard_error(here).hypot(here.error);
        let off = here.mean - printed.value;
        match () {
            _ if !joint.is_finite() || !off.is_finite() => Verdict::Open,
            _ if joint == 0.0 && printed.is_random() && off.abs() > printed.rounding => Verdict::NoSpread,
            // what was rounded may have stood anywhere within; ours is compared in full
            _ if off.abs() <= ERRORS * joint + printed.rounding * (1.0 + 1e-9) => Verdict::Agrees,
            _ => Verdict::Differs(if joint > 0.0 { off / joint } else { off.signum() * f64::INFINITY }),
        }
    }

    /// Of differences that are stated to be none.
    pub fn of_equality(difference: &Sample) -> Verdict {
        match difference.mean.abs() <= ERRORS * difference.error {
            _ if !difference.error.is_finite() => Verdict::Open,
            true => Verdict::Holds,
            false => Verdict::Fails,
        }
    }

    /// Of a stated difference, positive as stated.
    pub fn of_difference(difference: &Sample) -> Verdict {
        match difference.mean / difference.error {
            ratio if ratio > ERRORS => Verdict::Holds,
            ratio if ratio < -ERRORS => Verdict::Fails,
            _ => Verdict::Open,
        }
    }

    /// One word for JSON and counts.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Differs(_) => "differs",
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Open => "open",
            Verdict::NoSpread => "no verdict",
            Verdict::NotPrinted => "not printed",
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Verdict::Differs(by) if by.is_finite() => format!("**differs**, {by:+.1} joint errors"),
            Verdict::Differs(_) => "**differs**".to_string(),
            Verdict::Fails => "**fails**".to_string(),
            Verdict::NotPrinted => "-".to_string(),
            Verdict::NoSpread => "no verdict: nothing varies".to_string(),
            other => other.name().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_counts_both_errors_and_the_rounding() {
        // deviation 0.2 over 100: error 0.02; here 0.015: joint 0.025, so 0.05 and the rounding of 0.05
        let printed = Printed::new("0.5", 100).deviation("0.2");
        let here = |mean| Sample { mean, error: 0.015, count: 100 };
        assert_eq!(Verdict::of(Some(&printed), &here(0.5999)), Verdict::Agrees);
        let Verdict::Differs(by) = Verdict::of(Some(&printed), &here(0.6001)) else { panic!() };
        assert!((by - 0.1001 / 0.025).abs() < 1e-9);
        // an error printed as such
        let printed = Printed::new("0.500", 100).error("0.02");
        assert_eq!(Verdict::of(Some(&printed), &here(0.55)), Verdict::Agrees);
        assert!(matches!(Verdict::of(Some(&printed), &here(0.551)), Verdict::Differs(_)));
    }

    #[test]
    fn without_a_printed_spread_ours_stands_in() {
        // ours: deviation 0.1 over 25, error 0.02; for their 100: 0.01
        let here = Sample { mean: 0.5, error: 0.02, count: 25 };
        let joint = 0.02f64.hypot(0.01);
        let off = |by: f64| Printed { value: 0.5 + by, ..Printed::new("0.5000", 100) };
        assert_eq!(Verdict::of(Some(&off(2.0 * joint)), &here), Verdict::Agrees);
        assert!(matches!(Verdict::of(Some(&off(2.1 * joint)), &here), Verdict::Differs(_)));
        assert!(Printed::new("0.5", 100).text().contains("no sd printed"));
    }

    #[test]
    fn what_never_varies_gives_no_verdict_unless_it_is_the_printed_number() {
        let always = |value: f64| Sample::of(&[value; 3]);
        assert_eq!(Verdict::of(Some(&Printed::new("99.51", 1)), &always(99.53)), Verdict::NoSpread);
        assert_eq!(Verdict::of(Some(&Printed::new("99.5", 1)), &always(99.53)), Verdict::Agrees);
        let spread = Printed::new("99.51", 4).deviation("0.1");
        assert_eq!(Verdict::of(Some(&spread), &always(99.53)), Verdict::Agrees);
    }

    #[test]
    fn exact_numbers_agree_up_to_rounding_and_single_replications_tell_nothing() {
        let printed = Printed::new("1.70", 0);
        assert_eq!(Verdict::of(Some(&printed), &Sample::exact(1.7049)), Verdict::Agrees);
        assert!(matches!(Verdict::of(Some(&printed), &Sample::exact(1.71)), Verdict::Differs(by) if by > 0.0));
        assert_eq!(Verdict::of(Some(&Printed::new("1", 10)), &Sample::of(&[1.0])), Verdict::Open);
        assert_eq!(Verdict::of(None, &Sample::of(&[1.0, 2.0])), Verdict::NotPrinted);
    }

    #[test]
    fn means_errors_and_differences_are_the_textbook_ones() {
        let sample = Sample::of(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!((sample.mean, sample.count), (2.5, 4));
        assert!((sample.error - (5.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-15);
        let of = |values: &[f64]| Verdict::of_difference(&Sample::of(values));
        assert_eq!(of(&[1.0, 1.1, 0.9]), Verdict::Holds);
        assert_eq!(of(&[-1.0, -1.1, -0.9]), Verdict::Fails);
        assert_eq!([of(&[-1.0, 1.1, 0.9]), of(&[]), of(&[1.0])], [Verdict::Open; 3]);
        let equal = |values: &[f64]| Verdict::of_equality(&Sample::of(values));
        assert_eq!(equal(&[1.0, 1.1, 0.9]), Verdict::Fails);
        assert_eq!(equal(&[-1.0, 1.1, 0.9]), Verdict::Holds);
        assert_eq!(equal(&[0.0, 0.0]), Verdict::Holds);
        assert_eq!(equal(&[1.0]), Verdict::Open);
    }
}
