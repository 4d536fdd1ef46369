"""Growth of a fit in chunks with the number of rows, 20 columns, made on the fly: `python bench/stream.py [--rows N ...] [--file-rows N]`.

Linear growth are two columns that do not rise: seconds per million rows, and the same by pass. The peak is that of the resident set of a process that fits so many rows and nothing
else. A row that grows faster says MISSED. One more row is a CSV file through `outlast fit --stream`, whose rows are kept on disk: it must converge, within the memory given.
Where a row says MISSED the exit code is 1."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
LINEAR = 1.3
"""Times the seconds per million rows, and by pass, of the fewest rows: above that it is not linear."""
MEMORY = 64
"""MB for the file's fit."""


def built(package, kind, name):
    """The program of that name."""
    command = ["cargo", "build", "--quiet", "--release", "-p", package, f"--{kind}", name, "--message-format", "json"]
    lines = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    return next(m["executable"] for m in messages if m.get("target", {}).get("name") == name and m.get("executable"))


def told(*command):
    """What a program prints about a fit, and its peak resident set in MB."""
    run = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    text = run.stdout.read()
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, command)
    # bytes there, kilobytes elsewhere
    return json.loads(text), usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def growth(counts):
    """Prints a row for each number of rows; whether all are met."""
    program = built("outlast", "example", "stream_growth")
    print(f"data larger than memory, 20 columns (must: linear, at most {LINEAR} times the last two columns of the fewest rows)")
    print(f"{'rows':>12} {'seconds':>9} {'passes':>7} {'gap':>8} {'status':>10} {'peak MB':>8} {'s / million rows':>17} {'and pass':>9}")
    fewest, all_met = None, True
    for rows in sorted(counts):
        row, peak = told(program, rows)
        unit = row["seconds"] / (row["rows"] / 1e6)
        units = unit, unit / row["passes"]
        fewest = fewest or units
        met = row["status"] == "converged" and all(now <= LINEAR * least for now, least in zip(units, fewest))
        all_met &= met
        print(f"{row['rows']:>12,} {row['seconds']:>9.2f} {row['passes']:>7.0f} {row['gap']:>8.0e} {row['status']:>10} {peak:>8.0f} {units[0]:>17.2f} {units[1]:>9.3f}"
              f"{'' if met else ' MISSED'}", flush=True)
    return all_met


def write_csv(path, rows, columns=20):
    """Two classes around centres, one label in twenty wrong."""
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        file.write(",".join([*(f"x{j}" for j in range(columns)), "y"]) + "\n")
        for first in range(0, rows, 50_000):
            count = min(50_000, rows - first)
            y = rng.integers(0, 2, count)
            X = 0.6 * rng.standard_normal((count, columns)) + 0.08 * (2 * y[:, None] - 1) * (np.arange(columns) % 4)
            wrong = rng.random(count) < 0.05
            np.savetxt(file, np.column_stack([X, y ^ wrong]), fmt=["%.4f"] * columns + ["%d"], delimiter=",")


def through_a_file(rows):
    """Prints a row about a file; whether it is met."""
    program = built("outlast-cli", "bin", "outlast")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write_csv(path, rows)
        size = path.stat().st_size / 1e6
        fit, peak = told(program, "fit", "--stream", path, "--memory", f"{MEMORY}MB", "--kernel", "linear", "-C", "1e-3", "--json")
    met = fit["status"] == "converged" and fit["solver"] == "linear-stream" and peak <= MEMORY
    print(f"\na CSV file of {size:.0f} MB, --memory {MEMORY}MB (must: converged, rows kept on disk, peak within the memory)")
    print(f"{'rows':>12} {'reading s':>9} {'fitting s':>9} {'passes':>7} {'gap':>8} {'status':>10} {'peak MB':>8}")
    print(f"{fit['rows']:>12,} {fit['seconds']['read']:>9.2f} {fit['seconds']['fit']:>9.2f} {fit['details']['passes']:>7.0f} {fit['gap']:>8.0e} {fit['status']:>10} {peak:>8.0f}"
          f"{'' if met else ' MISSED'}", flush=True)
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 2_000_000, 8_000_000, 20_000_000])
    parser.add_argument("--file-rows", type=int, default=500_000, help="rows of the file; at least 100,000, or they would fit in memory")
    arguments = parser.parse_args()
    met = [growth(arguments.rows), through_a_file(arguments.file_rows)]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
