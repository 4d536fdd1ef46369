//! How a search ended, and what follows from that.

use crate::control::Control;
use crate::error::Error;
use crate::solver::Status;

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::select) enum Ended {
    Done,
    Interrupted,
    OutOfTime,
}

impl Ended {
    /// Whether it is at an end now.
    pub fn of(control: &Control) -> Ended {
        match () {
            _ if control.check().is_err() => Ended::Interrupted,
            _ if control.out_of_time() => Ended::OutOfTime,
            _ => Ended::Done,
        }
    }

    /// The same, as users see it.
    pub fn status(self) -> Status {
        match self {
            Ended::Done => Status::Converged,
            Ended::Interrupted => Status::Interrupted,
            Ended::OutOfTime => Status::TimeLimit,
        }
    }

    /// What goes on for the fit of the choice: after an interrupt it is not to be stopped by the same one.
    pub fn control<'a>(self, control: Control<'a>) -> Control<'a> {
        let control = if self == Ended::Interrupted { control.to_the_end() } else { control };
        control.silent()
    }

    /// What to say where no point was judged.
    pub fn without_choice(self) -> Error {
        match self {
            Ended::Done => Error::shape("cv", "splits whose held-out rows have no weight", "some weight to judge by"),
            Ended::Interrupted => Error::Interrupted,
            Ended::OutOfTime => Error::TimeLimit,
        }
    }
}
