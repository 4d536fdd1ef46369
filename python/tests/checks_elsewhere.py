"""Run by `test_wheel.py` in a venv of its own, with the oldest versions that are supported: scikit-learn's checks of every estimator."""

import sys
import warnings

import numpy as np
import scipy
import sklearn
from estimators import CLASSES, small
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

import outlast


def main():
    assert "site-packages" in outlast.__file__, f"{outlast.__file__} is not the wheel's"
    count = 0
    for kind in CLASSES:
        for estimator, check in estimator_checks_generator(small(kind)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.filterwarnings("ignore", message="Can't check dok sparse matrix|Skipping check")
                try:
                    check(estimator)
                except Exception as error:
                    if type(error).__name__ == "SkipTest":
                        continue
                    raise AssertionError(f"{kind.__name__}: {check}") from error
            count += 1
    versions = f"scikit-learn {sklearn.__version__}, numpy {np.__version__}, scipy {scipy.__version__}"
    print(f"{count} checks of {len(CLASSES)} classes; {versions}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
