"""Models in the forms of other programs, read and run by these programs."""

import json
import warnings

import numpy as np
import pytest
from liblinear import liblinearutil
from libsvm import svmutil
from scipy import sparse

from outlast import AblationSVC, LqSVC, TruncatedSVC, load

CLOSE = 1e-9
"""Relative difference allowed between our scores and those of another program in double precision."""

KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "poly": {"kernel": "poly", "degree": 3, "gamma": 0.2, "coef0": 0.7},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.05, "coef0": -0.2},
}


def data(k=2, n=80, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.standard_normal((n, 4)) + 1.5 * rng.standard_normal((k, 4))[y]
    X[np.abs(X) < 0.2] = 0.0
    return X, y


def fitted(X, y, **parameters):
    if parameters.get("kernel") == "sigmoid":
        # not positive definite: the fit may say so, the numbers are as good as any
        parameters["max_iter"] = 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TruncatedSVC(**parameters).fit(X, y)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("labels", [(1, -1), (3, 7)])
def test_libsvm_predicts_the_same(name, labels, tmp_path):
    X, y = data()
    y = np.array(labels)[y]
    model = fitted(X, y, **KERNELS[name])
    path = str(tmp_path / "model")
    model.export(path, "libsvm")
    theirs = svmutil.svm_load_model(path)
    decided, _, values = svmutil.svm_predict([], X, theirs, "-q")
    np.testing.assert_array_equal(np.array(decided, dtype=int), model.predict(X))
    np.testing.assert_allclose(np.ravel(values), model.decision_function(X), rtol=CLOSE, atol=CLOSE)


def test_libsvm_takes_sparse_rows_and_a_matrix_of_kernel_values(tmp_path):
    X, y = data()
    path = str(tmp_path / "model")
    model = TruncatedSVC(gamma=0.3).fit(sparse.csr_matrix(X), y)
    model.export(path, "libsvm")
    _, _, values = svmutil.svm_predict([], X, svmutil.svm_load_model(path), "-q")
    np.testing.assert_allclose(np.ravel(values), model.decision_function(X), rtol=CLOSE, atol=CLOSE)
    K = X @ X.T + 1.0
    model = TruncatedSVC(kernel="precomputed").fit(K, y)
    model.export(path, "libsvm")
    numbered = np.c_[np.arange(1, len(K) + 1), K]
    rows = [{column: value for column, value in enumerate(row)} for row in numbered]
    _, _, values = svmutil.svm_predict([], rows, svmutil.svm_load_model(path), "-q")
    np.testing.assert_allclose(np.ravel(values), model.decision_function(K), rtol=CLOSE, atol=CLOSE)
    again = load(path, n_features=len(K))
    assert again.kernel == "precomputed"
    np.testing.assert_array_equal(again.decision_function(K), model.decision_function(K))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_liblinear_predicts_the_same(k, tmp_path):
    X, y = data(k)
    for model in (TruncatedSVC(kernel="linear").fit(X, y + 2), LqSVC().fit(X, y + 2)):
        path = str(tmp_path / "model")
        model.export(path, "liblinear")
        decided, _, values = liblinearutil.predict([], X, liblinearutil.load_model(path), "-q")
        np.testing.assert_array_equal(np.array(decided, dtype=int), model.predict(X))
        ours = model.decision_function(X)
        # of two classes the bindings show the first one's value only
        ours = -ours[:, None] if k == 2 else ours
        np.testing.assert_allclose(np.array(values), ours, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("text", [False, True])
def test_onnx_graphs_are_sound_and_give_the_same(name, k, text, tmp_path):
    import onnx
    import onnxruntime

    X, y = data(k)
    y = np.array(["zero", "one ü", "<two>"])[y] if text else 10 * y
    model = fitted(X, y, **KERNELS[name])
    path = tmp_path / "model.onnx"
    model.export(path, "onnx")
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_outputs()] == ["label", "scores"]
    new = np.r_[X, 3 * np.random.default_rng(1).standard_normal((500, 4))]
    label, scores = session.run(None, {"X": new})
    np.testing.assert_array_equal(label.astype(y.dtype), model.predict(new))
    np.testing.assert_allclose(scores, model.decision_function(new), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_onnx_decides_the_same_where_scores_are_close(name, tmp_path):
    """onnxruntime may fuse a factor into a product, in single precision."""
    import onnxruntime
    from sklearn.datasets import make_classification

    path = tmp_path / "model.onnx"
    for seed in range(12):
        X, y = make_classification(150, 6, n_informative=4, n_classes=3, random_state=seed)
        model = fitted(X, y, truncation=None, **KERNELS[name])
        model.export(path, "onnx")
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        labels, scores = session.run(["label", "scores"], {"X": X})
        wanted = model.decision_function(X)
        np.testing.assert_allclose(scores, wanted, rtol=CLOSE, atol=CLOSE)
        # of equal scores either may win by the last bit
        second, first = np.sort(wanted, axis=1)[:, -2:].T
        told = first - second > 1e-12
        assert told.mean() > 0.95
        np.testing.assert_array_equal(labels[told], model.predict(X)[told])


def test_onnx_of_squares(tmp_path):
    import onnxruntime

    X, y = data(3)
    model = LqSVC(feature_map="squares").fit(X, y)
    model.export(tmp_path / "model.onnx", "onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    label, scores = session.run(None, {"X": X})
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-9)


def score(document, X):
    """A scorer written from the format's description."""
    kernel = document["kernel"]
    if "coef" in document:
        features = np.c_[X, X**2] if document["feature_map"] == "squares" else X
        return features @ np.array(document["coef"]).T + document["intercept"]
    S = np.array(document["support_vectors"])
    inner = X @ S.T
    values = {
        "linear": lambda: inner,
        "rbf": lambda: np.exp(-kernel["gamma"] * ((X[:, None] - S[None]) ** 2).sum(axis=2)),
        "poly": lambda: (kernel["gamma"] * inner + kernel["coef0"]) ** kernel["degree"],
        "sigmoid": lambda: np.tanh(kernel["gamma"] * inner + kernel["coef0"]),
    }[kernel["name"]]()
    return values @ np.array(document["dual_coef"]) + document["intercept"]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_json_is_enough_to_score(name, k, tmp_path):
    X, y = data(k)
    model = fitted(X, y, **KERNELS[name])
    model.export(tmp_path / "model.json", "json")
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["format"] == "outlast-json" and document["classes"] == list(range(k))
    found = score(document, X)
    np.testing.assert_allclose(found[:, 0] if k == 2 else found, model.decision_function(X), rtol=CLOSE, atol=CLOSE)


def test_what_can_t_be_told_is_refused_and_text_is_numbered(tmp_path):
    X, y = data(3)
    path = tmp_path / "model"
    with pytest.raises(ValueError, match="3 classes"):
        TruncatedSVC().fit(X, y).export(path, "libsvm")
    with pytest.raises(ValueError, match="rbf"):
        TruncatedSVC().fit(X, y).export(path, "liblinear")
    with pytest.raises(ValueError, match="precomputed"):
        TruncatedSVC(kernel="precomputed").fit(X @ X.T, y).export(path, "onnx")
    with pytest.raises(ValueError, match="callable"):
        TruncatedSVC(kernel=lambda A, B: A @ B.T).fit(X, y).export(path, "json")
    with pytest.raises(ValueError, match="format = \"pmml\""):
        TruncatedSVC().fit(X, y).export(path, "pmml")
    assert not path.exists()
    X, y = data()
    model = AblationSVC().fit(X, np.array(["no", "yes"])[y])
    with pytest.warns(UserWarning, match="0 = no, 1 = yes"):
        model.export(path, "libsvm")
    decided, _, _ = svmutil.svm_predict([], X, svmutil.svm_load_model(str(path)), "-q")
    np.testing.assert_array_equal(np.array(["no", "yes"])[np.array(decided, dtype=int)], model.predict(X))
