//! The registry of penalties. Adding one is a file beside this and a line in [`Penalty::ALL`].

use crate::error::{Error, Result};

/// How the size of the decision function is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Penalty {
    /// 1/2 |w|^2, with a kernel half the squared norm of its space.
    #[default]
    L2,
}

impl Penalty {
    /// Every penalty there is.
    pub const ALL: &'static [Penalty] = &[Penalty::L2];

    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Penalty::L2 => "l2",
        }
    }

    /// The penalty of that name.
    pub fn from_name(name: &str) -> Result<Penalty> {
        Penalty::ALL.iter().copied().find(|penalty| penalty.name() == name).ok_or_else(|| {
            let names: Vec<_> = Penalty::ALL.iter().map(|penalty| penalty.name()).collect();
            Error::parameter("penalty", format!("{name:?}"), format!("one of {}", names.join(", ")))
        })
    }
}
