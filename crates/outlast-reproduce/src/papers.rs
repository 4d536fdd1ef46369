//! The five papers.

/// A paper whose experiments are made again.
#[derive(Debug, PartialEq, Eq)]
pub struct Paper {
    /// Short, for lists.
    pub short: &'static str,
    /// The whole reference.
    pub reference: &'static str,
}

/// The truncated hinge loss.
pub const RSVM: Paper = Paper {
    short: "Wu and Liu 2007",
    reference: "Y. Wu and Y. Liu, Robust truncated hinge loss support vector machines, JASA 102 (2007) 974-983",
};

/// Utilities.
pub const WRSVM: Paper = Paper {
    short: "Liu, Wu and He 2010",
    reference: "Y. Liu, Y. Wu and Q. He, Utility-based weighted multicategory robust support vector machines, \
                Statistics and Its Interface 3 (2010) 465-475",
};

/// Convex relaxations.
pub const ABLATION: Paper = Paper {
    short: "Xu, Crammer and Schuurmans 2006",
    reference: "L. Xu, K. Crammer and D. Schuurmans, Robust support vector machine training via convex outlier ablation, AAAI 2006",
};

/// The L_q penalty.
pub const LQ: Paper = Paper {
    short: "Liu, Zhang, Park and Ahn 2007",
    reference: "Y. Liu, H. H. Zhang, C. Park and J. Ahn, The L_q support vector machine, Contemporary Mathematics (2007)",
};

/// Capped norms.
pub const CAPPED: Paper = Paper {
    short: "Nie, Wang and Huang 2017",
    reference: "F. Nie, X. Wang and H. Huang, Multiclass capped l_p-norm SVM for robust classifications, AAAI 2017",
};

/// What several of them state, checked by numbers.
pub const SEVERAL: Paper =
    Paper { short: "all", reference: "statements of several of the papers, checked by numbers alone" };
