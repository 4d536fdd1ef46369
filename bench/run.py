"""One table: the robust fit against the plain fits of others, in one process, on this machine.

    python bench/run.py [--data DIR] [--quick] [--row TEXT ...] [--json FILE]

Every row times the full truncated-hinge fit (truncation "auto", all d.c. steps, default tolerance) against a peer that only
solves the plain hinge. Peers take turns in the same process, and the best of a few repeats counts. `must` and `want` are the
ratios aimed at. The last columns compare quality: `value` is our objective over the peer's in the row's own measure, so that
1 or less means equal or better; `gap` is the relative duality gap that our last convex problem reached.
"""

import argparse
import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import report  # noqa: E402
import rows  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with ijcnn1, a9a, mnist and covtype; without it they are left out")
    parser.add_argument("--quick", action="store_true", help="the small rows only, one repeat each")
    parser.add_argument("--row", action="append", metavar="TEXT", help="only rows whose name contains TEXT (repeatable)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there as well")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearnex|daal4py|rehline")
    warnings.filterwarnings("ignore", category=FutureWarning)

    results = []
    for job in rows.jobs(arguments.data, arguments.quick):
        if arguments.row and not any(text in job.name for text in arguments.row):
            continue
        if job.missing:
            print(f"left out: {job.name}: {job.missing}", file=sys.stderr)
            continue
        print(f"running: {job.name}", file=sys.stderr, flush=True)
        results.extend(job.run())
    print(report.table(results))
    print(report.growth(results))
    if arguments.json:
        machine = report.machine()
        arguments.json.write_text(json.dumps({"machine": machine, "rows": [asdict(row) for row in results]}, indent=1))


if __name__ == "__main__":
    main()
