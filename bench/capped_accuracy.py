"""Accuracy of the capped machine by the protocol of Nie, Wang and Huang (2017), and by nested cross-validation.

    python bench/capped_accuracy.py --data DIR [--repeats N]

Columns scaled to [0, 1], five folds, C = 1 / (2 gamma) from their grid. The paper reports the best parameter *on the test folds*,
which flatters every method; the columns `nested` choose C on the training folds only. `SVM` is scikit-learn's linear SVC.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import outlast

SETS = ("wine.csv", "allaml.csv.gz", "prostate_ge.csv.gz", "jaffe.csv.gz")
GRID = [1.0 / (2.0 * gamma) for gamma in (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)]
METHODS = {"SVM": SVC(kernel="linear"), "capped p=2": outlast.CappedSVC(p=2.0), "capped p=1": outlast.CappedSVC(p=1.0)}


def accuracies(method, X, y, repeats):
    """Per cent right at the best C on the test folds, and with C chosen on the training folds."""
    best, nested = [], []
    for seed in range(repeats):
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        best.append(max(cross_val_score(clone(method).set_params(C=C), X, y, cv=folds).mean() for C in GRID))
        if seed == 0:
            search = GridSearchCV(clone(method), {"C": GRID}, cv=3)
            nested.append(cross_val_score(search, X, y, cv=folds).mean())
    return 100 * np.mean(best), 100 * np.mean(nested)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with " + ", ".join(SETS))
    parser.add_argument("--repeats", type=int, default=3, help="shuffles of the folds")
    options = parser.parse_args()
    print("data          " + "".join(f"{name:>12} {'nested':>7}" for name in METHODS))
    for name in SETS:
        if not (options.data / name).exists():
            print(f"{name}: not there")
            continue
        table = pd.read_csv(options.data / name)
        X, y = MinMaxScaler().fit_transform(table.iloc[:, :-1]), table.iloc[:, -1].to_numpy()
        row = [accuracies(method, X, y, options.repeats) for method in METHODS.values()]
        print(f"{name.split('.')[0]:14}" + "".join(f"{best:12.1f} {nested:7.1f}" for best, nested in row), flush=True)


if __name__ == "__main__":
    main()
