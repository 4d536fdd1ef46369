"""Writes the seeds of the fuzzer: small files of each kind, with the bytes of options that the targets take off their front.

    .venv/bin/python fuzz/make_seeds.py
"""

import gzip
import pathlib
import random
import shutil
import tempfile

import numpy as np
import outlast

HERE = pathlib.Path(__file__).parent
PARQUET = HERE.parent / "crates/outlast/tests/parquet_data"
PLAIN = bytes(7)


def write(target, seeds):
    folder = HERE / "seeds" / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, seed in enumerate(seeds):
        (folder / f"{number:02}").write_bytes(seed)


CSV = [
    b"age,income,y\n31,2.5,yes\n47,1.5,no\n",
    b'id;"a b";w;y\r\n1;0,5;1;c\r\n\r\n2;"1";2;d\r\n',
    b"1\t2\ta\n3\t4\tb\n",
    b"\xef\xbb\xbf1,2,1\n-1e300,+.5,0\n",
    b'x,label\n" 1 ","say ""z"""\n2,"two\nlines"\n',
    gzip.compress(b"1,2,a\n3,4,b\n", mtime=0),
]
LIBSVM = [
    b"1 1:0.5 3:2\n-1 2:1 # comment\n",
    b"+1 0:1 7:1e-3\n2 1:4\n\n0 70000:1\n",
    b"a 1:1\nb 2:1\r\n",
]
DECISIONS = [
    b"row,decision,label\n1,relabel,cat\n2,drop,\n",
    b'[{"row": 1, "decision": "relabel", "label": "cat"}, {"row": 2, "decision": "drop"}]',
    b'{"decisions": [{"row": 2, "decision": "keep", "label": 3}]}',
]
PAYOFFS = [
    b"\0a,b,c\n1,0,0\n0,1,0\n0,0.5,1\n",
    b"\0true,a,b,c\nc,1,0,0\na,0,1,0\nb,0,0.5,1\n",
    b"\x01,-1,+1.0\n-1,1,2\n1,3,4\n",
    b'\x02"x, y","say ""z""",\n1,0,0\n0,1,0\n0,0,1\n',
]
LIBSVM_MODELS = [
    b" c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\nSV\n0.25 1:0.5 3:2\n-0.25 2:1\n",
    b" nu_svc\nkernel_type polynomial\ndegree 3\ngamma 1\ncoef0 0\nnr_class 3\ntotal_sv 3\nrho 0 0 0\nlabel 0 1 2\nnr_sv 1 1 1\nSV\n"
    b"1 1 1:1\n-1 1 2:1\n-1 -1 3:1\n",
    b" c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho -1\nlabel 1 2\nnr_sv 1 1\nSV\n1 1:1\n-1 1:2\n",
]


def models():
    """Files of every kind of model."""
    X = np.array([[0.0, 0.1], [0.2, 0.0], [1.0, 0.9], [0.8, 1.1], [2.0, 0.1], [2.1, 0.0]])
    two, three = np.array(["a", "a", "b", "b", "a", "b"]), np.array([0, 0, 1, 1, 2, 2])
    fits = [
        (outlast.TruncatedSVC(), two),
        (outlast.TruncatedSVC(kernel="linear", penalty="l1"), three),
        (outlast.TruncatedSVC(kernel="poly", degree=2), three),
        (outlast.TruncatedSVC(kernel="linear", probability="weighted"), two),
        (outlast.TruncatedSVC(kernel="linear", utility=np.eye(3)), three),
        (outlast.LqSVC(feature_map="squares"), two),
        (outlast.CappedSVC(), three),
        (outlast.AblationSVC(), two),
        (outlast.TruncatedSVCCV([1.0], gammas=["scale"], cv=2), two),
    ]
    for model, y in fits:
        with tempfile.TemporaryDirectory() as folder:
            model.fit(X, y).save(folder + "/model")
            yield pathlib.Path(folder, "model").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "libsvm")
        path.write_bytes(b"svm_type" + LIBSVM_MODELS[1])
        outlast.load(path).save(folder + "/model")
        yield pathlib.Path(folder, "model").read_bytes()


def main():
    write("csv", [PLAIN + text for text in CSV])
    write("libsvm", [PLAIN + text for text in LIBSVM])
    small = sorted(path for path in PARQUET.glob("*.parquet") if path.stat().st_size < 4000)
    write("parquet", [PLAIN + path.read_bytes() for path in small])
    write("stream", [bytes([kind]) + PLAIN + text for kind, texts in enumerate((CSV, LIBSVM)) for text in texts])
    halves = [bytes([len(d) // 4 + 1]) + d + b" " * (4 - len(d) % 4) for d in DECISIONS]
    write("decisions", [PLAIN + b"\0" + d + CSV[0] for d in halves] + [b"\1" + PLAIN + d + LIBSVM[0] for d in halves])
    write("payoff", PAYOFFS)
    write("model", models())
    write("libsvm_model", LIBSVM_MODELS)
    draw = random.Random(0)
    write("fit", [bytes(draw.randrange(256) for _ in range(200)) for _ in range(40)])


main()
