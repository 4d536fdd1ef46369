"""Makes the files beside this one with pyarrow and polars, readers' peers that share no code with us:

    python crates/outlast/tests/parquet_data/make.py

`table.csv` is the table that every file but those named `refused_*` holds."""

import datetime
import decimal
import math
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq

here = Path(__file__).parent
ROWS = 60
KINDS = ["red", "green", "red", "a longer name", "blue"]


def rows(first, last):
    r = range(first, last)
    return pa.table(
        {
            "a": pa.array([math.sin(0.37 * k) * 1e3 for k in r], pa.float64()),
            "b": pa.array([math.cos(0.11 * k) for k in r], pa.float32()),
            "c": pa.array([k % 100 - 50 for k in r], pa.int16()),
            "d": pa.array([(k - 7) * 1_000_003 for k in r], pa.int64()),
            "e": pa.array([k % 3 == 0 for k in r], pa.bool_()),
            "f": pa.array([2**32 - 1 - k for k in r], pa.uint32()),
            "g": pa.array([(k - 30) / 8 for k in r], pa.float16()),
            "digits": pa.array([f" {k / 4} " for k in r], pa.string()),
            "kind": pa.array([KINDS[k * k % 5] for k in r], pa.string()),
        }
    )


table = rows(0, ROWS)
lean = {"write_statistics": False, "store_schema": False}


def put(name, **options):
    pq.write_table(table, here / f"{name}.parquet", **(lean | options))


put("snappy", compression="snappy")
put("gzip_v2", compression="gzip", data_page_version="2.0", version="2.6")
put("lz4", compression="lz4", use_dictionary=False)
put("zstd_v2", compression="zstd", data_page_version="2.0")
put("plain", compression="none", use_dictionary=False, data_page_version="2.0")
put("groups", compression="none", row_group_size=17, data_page_size=40)
put("one", compression="snappy", use_dictionary=["kind"], store_schema=True, write_statistics=True, write_page_index=True)
split = {"a": "BYTE_STREAM_SPLIT", "b": "BYTE_STREAM_SPLIT", "c": "DELTA_BINARY_PACKED", "d": "DELTA_BINARY_PACKED"}
texts = {"digits": "DELTA_LENGTH_BYTE_ARRAY", "kind": "DELTA_BYTE_ARRAY", "e": "RLE", "f": "DELTA_BINARY_PACKED"}
put("delta", compression="snappy", use_dictionary=False, column_encoding=split | texts)
put("delta_plain", compression="none", use_dictionary=False, data_page_version="2.0", column_encoding=split | texts)
polars.from_arrow(table).write_parquet(here / "polars.parquet", statistics=False)

lines = [",".join(table.column_names)]
for row in table.to_pylist():
    row["e"] = int(row["e"])
    lines.append(",".join(str(value) for value in row.values()))
(here / "table.csv").write_text("\n".join(lines) + "\n")


def refused(name, column, **options):
    small = pa.table({"x": pa.array([1, 2, 3]), "when": column, "y": pa.array([0, 1, 0])})
    pq.write_table(small, here / f"refused_{name}.parquet", **({"compression": "none"} | lean | options))


day = datetime.datetime(2020, 1, 1)
refused("null", pa.array([1.5, 2.5, None]))
refused("nan", pa.array([1.5, math.nan, 2.5]))
refused("text", pa.array(["1.5", "many", "2"]))
refused("timestamp", pa.array([day, day, day]))
refused("date", pa.array([day.date()] * 3))
refused("decimal", pa.array([decimal.Decimal("1.25")] * 3))
refused("nested", pa.array([[1, 2], [3], []]))
refused("struct", pa.array([{"p": 1, "q": "z"}] * 3))
refused("bytes", pa.array([b"abc"] * 3, pa.binary(3)))
refused("brotli", pa.array([1, 2, 3]), compression="brotli")
refused("old_timestamp", pa.array([day, day, day]), use_deprecated_int96_timestamps=True)
pq.write_table(table.slice(0, 0), here / "refused_empty.parquet", **lean)
