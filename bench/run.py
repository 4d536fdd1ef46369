"""One table: the robust fit against the plain fits of others, in one run, on this machine.

    python bench/run.py [--data DIR] [--quick] [--limit SECONDS] [--row TEXT ...] [--reference DIR]
                        [--json FILE]

Every row times the full truncated-hinge fit (truncation "auto", all d.c. steps, default tolerance) against a peer that only
solves the plain hinge. The peer has a process of its own, made and warmed by a small fit before any clock starts, and is
stopped when it takes longer than --limit; the ratio is then an upper bound, printed as "< x". We and the peer take turns in
changing order, and the best of a few repeats counts. `must` and `want` are the ratios aimed at; a row is MISSED as well when
our fit did not converge or its objective is above the peer's. The last columns compare quality: `value` is our objective
over the peer's in the row's own measure, so that 1 or less means equal or better; `gap` is the relative duality gap that our
last convex problem reached, `peer's gap` that of the peer's own problem, (primal - dual) / primal. A peer that is not
installed is left out.

Rows about convex outlier ablation compare with the semidefinite program in cvxpy, and with other scripts for the same
relaxation where the folder of --reference has them.

Rows about the capped machine compare the full fit (five rounds in which the cap moves, exact rounds to the end, several
starts, on a sample of the rows where these are many) with scikit-learn's plain squared hinge and SVC, and its exact rounds with the alternating algorithm at the objective
that one reaches.

Rows about tuning compare a whole search with scikit-learn's grid search on the same grid and folds.

Real data, in the folder of --data, each left out if it is not there:

    ijcnn1.libsvm.gz       LIBSVM text, labels -1 and 1
    a9a_train.libsvm.gz    LIBSVM text, labels -1 and 1
    mnist_train.csv.gz     a header, 784 pixels from 0 to 255, then the digit; the first 10,000 rows, odd against even
    covtype.csv.gz         a header, 54 columns, then the cover type; type 2 against the rest, and all seven types
    pendigits_train.csv    a header, 16 columns, then the digit
    letter.csv             a header, 16 columns, then the letter's number
"""

import argparse
import itertools
import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import ablation  # noqa: E402
import capped  # noqa: E402
import lq  # noqa: E402
import many  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import tune  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the real data")
    parser.add_argument("--quick", action="store_true", help="the small rows only, one repeat each")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="stop a peer's fit after that long [120]")
    parser.add_argument("--row", action="append", metavar="TEXT", help="only rows whose name contains TEXT (repeatable)")
    parser.add_argument("--reference", type=Path, metavar="DIR", help="folder with ablation_fast.py and ablation_bnb.py")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there as well")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearnex|daal4py|rehline")
    warnings.filterwarnings("ignore", category=FutureWarning)

    results = []
    asked = (arguments.data, arguments.quick, arguments.limit)
    for job in itertools.chain(rows.jobs(*asked), many.jobs(*asked), ablation.jobs(*asked, arguments.reference),
                               capped.jobs(*asked), lq.jobs(arguments.quick, arguments.limit),
                               tune.jobs(arguments.data, arguments.quick)):
        if arguments.row and not any(text in job.name for text in arguments.row):
            continue
        if job.missing:
            print(f"left out: {job.name}: {job.missing}", file=sys.stderr)
            continue
        print(f"running: {job.name}", file=sys.stderr, flush=True)
        for result in job.run():
            print(f"  {result.name}: {report.short(result)}", file=sys.stderr, flush=True)
            results.append(result)
    print(report.table(results))
    print(report.growth(results))
    if arguments.json:
        machine = report.machine()
        arguments.json.write_text(json.dumps({"machine": machine, "rows": [asdict(row) for row in results]}, indent=1))


if __name__ == "__main__":
    main()
