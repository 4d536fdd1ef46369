"""Growth of a fit in chunks with the number of rows, 20 columns, made on the fly: `python bench/stream.py [--rows N ...]`.

Linear growth is a column of seconds per million rows and pass that does not rise. The peak is that of the resident set of a process that fits so many rows and nothing
else. A row that grows faster says MISSED, and then the exit code is 1."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINEAR = 1.3
"""Times the seconds per million rows and pass of the fewest rows: above that it is not linear."""


def built():
    """The program that fits."""
    command = ["cargo", "build", "--quiet", "--release", "-p", "outlast", "--example", "stream_growth", "--message-format", "json"]
    lines = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    return next(m["executable"] for m in messages if m.get("target", {}).get("name") == "stream_growth" and m.get("executable"))


def fitted(program, rows):
    """What it prints about so many rows, and its peak resident set in MB."""
    run = subprocess.Popen([program, str(rows)], stdout=subprocess.PIPE, text=True)
    told = run.stdout.read()
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, program)
    # bytes there, kilobytes elsewhere
    return json.loads(told), usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 2_000_000, 8_000_000, 20_000_000])
    arguments = parser.parse_args()
    program = built()
    print(f"data larger than memory, 20 columns (must: linear, at most {LINEAR} times the last column of the fewest rows)")
    print(f"{'rows':>12} {'seconds':>9} {'passes':>7} {'gap':>8} {'status':>10} {'peak MB':>8} {'s / (million rows x pass)':>26}")
    units = []
    missed = False
    for rows in sorted(arguments.rows):
        row, peak = fitted(program, rows)
        units.append(row["seconds"] / (row["rows"] / 1e6) / row["passes"])
        met = row["status"] == "converged" and units[-1] <= LINEAR * units[0]
        missed |= not met
        print(f"{row['rows']:>12,} {row['seconds']:>9.2f} {row['passes']:>7.0f} {row['gap']:>8.0e} {row['status']:>10} {peak:>8.0f} {units[-1]:>26.3f}"
              f"{'' if met else ' MISSED'}", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
