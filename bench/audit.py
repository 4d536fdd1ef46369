"""How well audits rank wrong labels: `outlast.audit` against cleanlab, in one run, on this machine.

    python bench/audit.py [--data DIR] [--set NAME ...] [--noise NAME ...] [--json FILE]

Clean sets get known mistakes (bench/noisy.py), and each ranking is scored against these by average precision and the area under
the ROC curve. Cleanlab (optional: `pip install cleanlab`) ranks by `get_label_quality_scores`, with its default settings, from the
probabilities of scikit-learn's SVC and logistic regression in pipelines with StandardScaler, held out in five stratified folds.
Seconds are of processor time, which a busy machine does not change much; everything runs on one thread.

MNIST has real mistakes: of 100 test images that a program had flagged, people found 15 wrong (mnist_test_label_review.csv). All
10,000 are ranked, by their 50 leading principal components; "MNIST" scores how the 15 stand among all rows, "MNIST, reviewed" how
they stand among the 100.

The score was chosen on the sets named in noisy.CHOSEN_ON, and is reported on all; those it was not chosen on, MNIST among them, bear a star.
"""

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

# before numpy is there to be told: one thread for everybody
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parent))

import noisy  # noqa: E402

import outlast  # noqa: E402

try:
    from cleanlab.rank import get_label_quality_scores
except ImportError:
    get_label_quality_scores = None

PEERS = {
    "SVC": lambda: SVC(probability=True, random_state=0),
    "logistic": lambda: LogisticRegression(max_iter=1000),
}


def ours(X, y):
    return outlast.audit(X, y, random_state=0, n_jobs=1).scores


def cleanlab_with(model):
    def rank(X, y):
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        pipeline = make_pipeline(StandardScaler(), model())
        likely = cross_val_predict(pipeline, X, y, cv=folds, method="predict_proba")
        return 1.0 - get_label_quality_scores(y, likely)

    return rank


def rankers():
    found = {"outlast": ours}
    if get_label_quality_scores is None:
        print("cleanlab is not installed: its columns are left out", file=sys.stderr)
        return found
    return found | {name: cleanlab_with(model) for name, model in PEERS.items()}


def measure(name, noise, X, y, wrong, some=None):
    """One row of the table; `some` are the rows that count, all by default."""
    row = {"set": name, "noise": noise, "rows": len(y), "classes": len(np.unique(y)), "wrong": int(wrong.sum())}
    rows = [dict(row)] if some is None else [dict(row), dict(row, set=f"{name}, reviewed", rows=int(some.sum()))]
    for ranker, rank in rankers().items():
        start = time.process_time()
        scores = rank(X, y)
        seconds = time.process_time() - start
        for result, mask in zip(rows, (slice(None), some)):
            result[ranker] = {
                "precision": average_precision_score(wrong[mask], scores[mask]),
                "area": roc_auc_score(wrong[mask], scores[mask]),
                "seconds": seconds,
            }
    return rows


def mnist(folder):
    """X, y, the rows found wrong by people, the rows looked at by people; None if the files are not there."""
    import pandas

    data, review = Path(folder or ".") / "mnist_test.csv.gz", Path(folder or ".") / "mnist_test_label_review.csv"
    if folder is None or not (data.is_file() and review.is_file()):
        return None
    table = pandas.read_csv(data, dtype=np.float64).to_numpy()
    X, y = table[:, :-1], table[:, -1].astype(int)
    review = pandas.read_csv(review)
    votes = [column for column in review.columns if "given" in column.lower()]
    reviewed = np.zeros(len(y), dtype=bool)
    reviewed[review["row"] - 1] = True
    wrong = np.zeros(len(y), dtype=bool)
    wrong[review["row"][review[votes[-1]] < 3] - 1] = True
    return PCA(50, random_state=0).fit_transform(X / 255.0), y, wrong, reviewed


def table(rows):
    """The results as Markdown, and the means of both measures."""
    names = [name for name in ("outlast", *PEERS) if name in rows[0]]
    titles = {"outlast": "outlast", "SVC": "cleanlab, SVC", "logistic": "cleanlab, logistic"}
    head = ["set", "mistakes", "rows", "classes", "wrong"]
    head += [f"AP {titles[name]}" for name in names] + [f"AUROC {titles[name]}" for name in names] + [f"s {titles[name]}" for name in names]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    for row in rows:
        # whatever has no star had a say in the choice of the score
        cells = [row["set"] + ("" if row["set"] in noisy.CHOSEN_ON else " \\*"), row["noise"],
                 str(row["rows"]), str(row["classes"]), str(row["wrong"])]
        for measure_name in ("precision", "area"):
            best = max(round(row[name][measure_name], 3) for name in names)
            for name in names:
                value = row[name][measure_name]
                cells.append(f"**{value:.3f}**" if round(value, 3) == best else f"{value:.3f}")
        cells += [f"{row[name]['seconds']:.2f}" for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(rows):
    names = [name for name in ("outlast", *PEERS) if name in rows[0]]
    groups = {
        "all": rows,
        "sets the score was chosen on": [row for row in rows if row["set"] in noisy.CHOSEN_ON],
        "other sets": [row for row in rows if row["set"] not in noisy.CHOSEN_ON],
    }
    groups |= {noise: [row for row in rows if row["noise"] == noise] for noise in noisy.NOISES}
    lines = ["| | rows of the table | " + " | ".join(f"mean AP {name}" for name in names) + " | "
             + " | ".join(f"mean AUROC {name}" for name in names) + " | best AP | " + " | ".join(f"s {name}" for name in names) + " |"]
    lines.append("|---|" + "---:|" * (2 + 3 * len(names)))
    for title, group in groups.items():
        if not group:
            continue
        mean = [[np.mean([row[name][what] for row in group]) for name in names] for what in ("precision", "area")]
        ahead = sum(row["outlast"]["precision"] >= max(row[name]["precision"] for name in names) for row in group)
        # what is judged twice is ranked once
        ranked = [row for row in group if not row["set"].endswith("reviewed")]
        seconds = [sum(row[name]["seconds"] for row in ranked) for name in names]
        lines.append(f"| {title} | {len(group)} | " + " | ".join(f"{value:.3f}" for values in mean for value in values)
                     + f" | {ahead} of {len(group)} | " + " | ".join(f"{value:.1f}" for value in seconds) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the real data")
    parser.add_argument("--set", action="append", metavar="NAME", help="only sets of that name (repeatable)")
    parser.add_argument("--noise", action="append", metavar="NAME", help="only mistakes of that name (repeatable)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the results there; what it holds is not measured again")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    # what is loaded on first use is there before any clock starts
    for rank in rankers().values():
        rank(*noisy.clean("iris", None))
    results = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.is_file() else []
    done = {(row["set"], row["noise"]) for row in results}
    for name in (*noisy.BUILT_IN, *noisy.FILES):
        for noise in noisy.NOISES:
            if arguments.set and name not in arguments.set or arguments.noise and noise not in arguments.noise:
                continue
            if (name, noise) in done:
                continue
            found = noisy.noisy(name, noise, arguments.data)
            if found is None:
                print(f"left out: {name}: its file is not there", file=sys.stderr)
                break
            results += measure(name, noise, *found)
            show(results[-1])
            keep(results, arguments.json)
    if ("MNIST", "real") in done:
        pass
    elif not arguments.set or "MNIST" in arguments.set:
        found = mnist(arguments.data)
        if found is None:
            print("left out: MNIST: its files are not there", file=sys.stderr)
        else:
            X, y, wrong, reviewed = found
            results += measure("MNIST", "real", X, y, wrong, reviewed)
            show(results[-2])
            show(results[-1])
    print(table(results))
    print()
    print(summary(results))
    keep(results, arguments.json)


def keep(results, path):
    if path:
        path.write_text(json.dumps(results, indent=1))


def show(row):
    parts = [f"{name} {value['precision']:.3f} {value['area']:.3f} {value['seconds']:.2f} s"
             for name, value in row.items() if isinstance(value, dict)]
    print(f"{row['set']}, {row['noise']}: " + "; ".join(parts), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
