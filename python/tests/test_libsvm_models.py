"""Model files of LIBSVM, made by LIBSVM itself: read here, they decide as there."""

import itertools
import pickle

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


@pytest.mark.parametrize("labels", [(1, -1), (3, 7)])
def test_decisions_of_a_precomputed_kernel(labels, tmp_path):
    X, y = data(labels)
    K = X @ X.T + 1.0
    # LIBSVM wants the number of the row, counted from 1, in a column of number 0
    rows = [dict(enumerate(row)) for row in np.c_[np.arange(1, len(K) + 1), K].tolist()]
    theirs = trained(rows, y, "-t 4 -c 2", tmp_path / "model")
    decided, _, values = svmutil.svm_predict([], rows, theirs, "-q")
    model = outlast.load(tmp_path / "model", n_features=len(K))
    np.testing.assert_array_equal(model.predict(K), np.array(decided, dtype=int))
    sign = 1 if theirs.get_labels()[0] == max(labels) else -1
    np.testing.assert_allclose(sign * model.decision_function(K), np.ravel(values), rtol=CLOSE, atol=CLOSE * np.abs(values).max())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(K), model.decision_function(K))
    model.save(tmp_path / "saved")
    np.testing.assert_array_equal(outlast.load(tmp_path / "saved").decision_function(K), model.decision_function(K))


def columns_of_pairs(values, labels):
    """LIBSVM's values, a column for each pair of labels in its own order, as columns of pairs of sorted labels, positive for the first."""
    found = {}
    for column, (first, second) in zip(np.transpose(values), itertools.combinations(labels, 2), strict=True):
        found[first, second], found[second, first] = column, -column
    return np.transpose([found[pair] for pair in itertools.combinations(sorted(labels), 2)])


@pytest.mark.parametrize("options", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("machine", ["-s 0 -c 2", "-s 1 -n 0.2"])
@pytest.mark.parametrize("labels", [(5, -1, 3), (2, 9, 4, 7, 1)])
def test_pairs_vote_as_in_libsvm(options, machine, labels, tmp_path):
    X, y = data(labels, n=90)
    trained(X, y, f"{machine} {options}", tmp_path / "model")
    model = outlast.load(tmp_path / "model")
    # both machines predict the same way, but LIBSVM 3.37 crashes when it predicts with nu_svc and more than two classes
    (tmp_path / "c_svc").write_text((tmp_path / "model").read_text().replace("svm_type nu_svc", "svm_type c_svc"))
    theirs = svmutil.svm_load_model(str(tmp_path / "c_svc"))
    new = np.r_[X, 2 * np.random.default_rng(1).normal(size=(110, 5))]
    decided, _, values = svmutil.svm_predict([], new, theirs, "-q")
    expected = columns_of_pairs(values, theirs.get_labels())
    np.testing.assert_allclose(model.decision_function(new), expected, rtol=CLOSE, atol=CLOSE * np.abs(values).max())
    for rows in (new, sparse.csr_matrix(new), np.asfortranarray(new)):
        np.testing.assert_array_equal(model.predict(rows), np.array(decided, dtype=int))
    pairs = len(labels) * (len(labels) - 1) // 2
    assert model.decision_function(new).shape == (len(new), pairs) and model.intercept_.shape == (pairs,)
    assert model.dual_coef_.shape == (len(labels) - 1, len(model.support_))
    assert model.support_vectors_.shape == (theirs.get_nr_sv(), 5)
    # ties, in which LIBSVM decides for the label it saw first, do occur: with five labels and the linear kernel here
    votes = np.zeros((len(new), len(labels)))
    for column, (first, second) in zip(np.transpose(values), itertools.combinations(range(len(labels)), 2), strict=True):
        votes[np.arange(len(new)), np.where(column > 0, first, second)] += 1
    assert len(labels) == 3 or options != KERNELS["linear"] or ((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1).any()
    # and on: to our files, back to theirs, to a clone that can be fitted
    model.save(tmp_path / "ours")
    model.export(tmp_path / "back", "libsvm")
    for path in ("ours", "back"):
        again = outlast.load(tmp_path / path)
        np.testing.assert_array_equal(again.decision_function(new), model.decision_function(new))
    back = svmutil.svm_load_model(str(tmp_path / "back"))
    np.testing.assert_array_equal(svmutil.svm_predict([], new, back, "-q")[0], decided)
    assert pickle.loads(pickle.dumps(model)).predict(new).tolist() == model.predict(new).tolist()
    for name in ("onnx", "json", "liblinear"):
        with pytest.raises(ValueError, match="a model whose pairs of classes vote is not allowed: format must be libsvm"):
            model.export(tmp_path / "other", name)


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


@pytest.mark.parametrize(("option", "name"), [("-s 2", "one_class"), ("-s 3", "epsilon_svr"), ("-s 4", "nu_svr")])
def test_what_is_no_classifier_is_refused_by_name(option, name, tmp_path):
    X, y = data((1, 2, 3))
    trained(X, y, option, tmp_path / "model")
    with pytest.raises(ValueError, match=f'line 1.*svm_type "{name}" is no classifier'):
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
