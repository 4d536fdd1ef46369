"""Model files of LIBSVM, made by LIBSVM itself: read here, they decide as there."""

import numpy as np
import pytest
from libsvm import svmutil
from scipy import sparse

import outlast

CLOSE = 1e-9
"""Relative difference allowed between our decision values and LIBSVM's."""

KERNELS = {
    "linear": "-t 0",
    "polynomial": "-t 1 -d 2 -g 0.3 -r 1",
    "polynomial of degree 3 without a constant": "-t 1 -d 3 -g 0.2",
    "rbf": "-t 2 -g 0.4",
    "sigmoid": "-t 3 -g 0.05 -r -0.1",
}


def data(labels, n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(labels), n)
    X = rng.normal(size=(n, 5)) + y[:, None] * [1.0, -0.7, 0.0, 0.3, 0.0]
    X[np.abs(X) < 0.3] = 0.0
    return X, np.array(labels)[y]


def trained(X, y, options, path):
    model = svmutil.svm_train(y, X, options + " -q")
    svmutil.svm_save_model(str(path), model)
    # read back: support vectors are written with eight digits
    return svmutil.svm_load_model(str(path))


@pytest.mark.parametrize("options", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("machine", ["-s 0 -c 2", "-s 1 -n 0.4"])
@pytest.mark.parametrize("labels", [(1, -1), (3, 7)])
def test_decisions_are_those_of_libsvm(options, machine, labels, tmp_path):
    X, y = data(labels)
    theirs = trained(X, y, f"{machine} {options}", tmp_path / "model")
    model = outlast.load(tmp_path / "model")
    new = np.r_[X, 2 * np.random.default_rng(1).normal(size=(100, 5))]
    decided, _, values = svmutil.svm_predict([], new, theirs, "-q")
    np.testing.assert_array_equal(model.predict(new), np.array(decided, dtype=int))
    # LIBSVM's value is positive for the label it saw first, ours for the larger
    sign = 1 if theirs.get_labels()[0] == max(labels) else -1
    np.testing.assert_allclose(sign * model.decision_function(new), np.ravel(values), rtol=CLOSE, atol=CLOSE * np.abs(values).max())
    np.testing.assert_array_equal(model.predict(sparse.csr_matrix(new)), np.array(decided, dtype=int))
    assert model.truncation is None and list(model.classes_) == sorted(labels) and not hasattr(model, "objective_")


def test_the_model_travels_on(tmp_path):
    X, y = data((1, -1))
    trained(X, y, "-t 2 -g 0.4 -b 1", tmp_path / "theirs")
    model = outlast.load(tmp_path / "theirs")
    model.save(tmp_path / "ours")
    model.export(tmp_path / "back", "libsvm")
    for path in ("ours", "back"):
        again = outlast.load(tmp_path / path)
        np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-12)


@pytest.mark.parametrize("options", ["-t 0", "-t 2 -g 0.4"])
def test_more_columns_than_the_file_names(options, tmp_path):
    X, y = data((1, -1))
    X = np.c_[X, np.zeros((len(X), 3))]
    theirs = trained(X, y, options, tmp_path / "model")
    with pytest.raises(ValueError, match="X has 8 features, but TruncatedSVC is expecting 5"):
        outlast.load(tmp_path / "model").predict(X)
    model = outlast.load(tmp_path / "model", n_features=8)
    X[:, 6] = 1.0
    _, _, values = svmutil.svm_predict([], X, theirs, "-q")
    np.testing.assert_allclose(np.abs(model.decision_function(X)), np.abs(np.ravel(values)), rtol=CLOSE, atol=CLOSE)
    with pytest.raises(ValueError, match="features = 4 is not allowed"):
        outlast.load(tmp_path / "model", n_features=4)


def test_what_is_no_classifier_of_two_classes_is_refused_by_name(tmp_path):
    X, y = data((1, 2, 3))
    for options, message in [
        ("-t 2", "line 4.*nr_class 3: LIBSVM decides between more than two classes by a vote"),
        ("-s 3", 'line 1.*svm_type "epsilon_svr" is no classifier'),
        ("-s 2", 'line 1.*svm_type "one_class"'),
    ]:
        trained(X, y, options, tmp_path / "model")
        with pytest.raises(ValueError, match=message):
            outlast.load(tmp_path / "model")


def test_a_damaged_file_is_refused_with_its_line(tmp_path):
    X, y = data((1, -1))
    path = tmp_path / "model"
    trained(X, y, "-t 2 -g 0.4", path)
    lines = path.read_text().splitlines(keepends=True)
    rng = np.random.default_rng(0)
    for _ in range(30):
        at = rng.integers(1, len(lines))
        path.write_text("".join(lines[:at]) + "x:y z\n" + "".join(lines[at:]))
        with pytest.raises(ValueError, match=f"{path.name}, line {at + 1}"):
            outlast.load(path)
        path.write_text("".join(lines[:at]))
        with pytest.raises(ValueError, match=f"{path.name}.*"):
            outlast.load(path)
