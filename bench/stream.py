"""Growth of a fit in chunks with the number of rows, 20 columns, made on the fly: `python bench/stream.py [--rows N ...]`.

Linear growth is a column of seconds per million rows and pass that does not rise."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 2_000_000, 8_000_000, 20_000_000])
    arguments = parser.parse_args()
    command = ["cargo", "run", "--quiet", "--release", "-p", "outlast", "--example", "stream_growth", "--"]
    run = subprocess.Popen(command + [str(n) for n in arguments.rows], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(f"{'rows':>12} {'seconds':>9} {'passes':>7} {'gap':>8} {'status':>10} {'s / (million rows x pass)':>26}")
    for line in run.stdout:
        row = json.loads(line)
        unit = row["seconds"] / (row["rows"] / 1e6) / row["passes"]
        print(f"{row['rows']:>12,} {row['seconds']:>9.2f} {row['passes']:>7.0f} {row['gap']:>8.0e} {row['status']:>10} {unit:>26.3f}")
        sys.stdout.flush()
    return run.wait()


if __name__ == "__main__":
    sys.exit(main())
