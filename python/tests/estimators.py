"""Every public estimator, for the tests that all of them must pass."""

import inspect

import outlast
from outlast import (
    AblationSVC,
    AblationSVCCV,
    CappedSVC,
    CappedSVCCV,
    CentroidSVC,
    LeaveOneOutSVC,
    LqSVC,
    LqSVCCV,
    TruncatedSVC,
    TruncatedSVCCV,
)
from sklearn.base import ClassifierMixin

CLASSES = sorted(
    (kind for kind in vars(outlast).values() if inspect.isclass(kind) and issubclass(kind, ClassifierMixin)),
    key=lambda kind: kind.__name__,
)

_SMALL = {
    LqSVCCV: {"Cs": 3, "qs": [0.5, 1.0], "cv": 2},
    TruncatedSVCCV: {"Cs": [0.1, 10.0], "cv": 2},
    CappedSVCCV: {"Cs": [0.1, 10.0], "cap_fractions": [0.0, 0.1], "cv": 2},
    AblationSVCCV: {"Cs": [0.1, 10.0], "cv": 2},
}
"""Parameters that keep a search short."""


def small(kind, **parameters):
    """An estimator of a kind, quick to fit."""
    known = _SMALL.get(kind, {"cv": 2} if "cv" in inspect.signature(kind).parameters else {})
    return kind(**known, **parameters)


ONE_OF_EACH = [small(kind) for kind in CLASSES]

VARIANTS = [
    TruncatedSVC(kernel="linear"),
    TruncatedSVC(truncation=None),
    TruncatedSVC(loss="logistic"),
    TruncatedSVC(kernel="linear", penalty="l1"),
    TruncatedSVC(kernel="linear", penalty="l1", loss="logistic"),
    TruncatedSVC(kernel="linear", penalty="lq"),
    TruncatedSVC(kernel="poly"),
    TruncatedSVC(kernel="sigmoid", truncation=None),
    TruncatedSVC(class_weight="balanced"),
    LqSVC(q=0.5),
    LqSVC(q=1.5),
    LqSVC(solver="lqa"),
    LqSVC(feature_map="squares"),
    AblationSVC("rod", inlier_fraction=0.9),
    AblationSVC("rod", inlier_fraction=0.9, kernel="rbf", tol=1e-8),
    AblationSVC(kernel="rbf", fit_intercept=True),
    CappedSVC(p=2.0, kernel="rbf"),
    CentroidSVC(kernel="rbf"),
    LeaveOneOutSVC(kernel="rbf"),
    LqSVCCV(3, [1.0, 2.0], standardize=False, rule="one_se", cv=2),
    TruncatedSVCCV([1.0], kernel="linear", cv=2),
    CappedSVCCV([1.0], kernel="rbf", gammas=["scale"], cap_fractions=[0.1], cv=2),
    AblationSVCCV("reh", [1.0], kernel="rbf", gammas=["scale"], cv=2),
    # for larger C a row that is left out stands at the margin of two classes, and rounding decides between them
    AblationSVCCV("rod", [0.01], inlier_fractions=[0.95], cv=2),
]


def name(estimator):
    """For test names."""
    return repr(estimator)
