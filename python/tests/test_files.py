"""Model files: what is saved is what comes back."""

import numpy as np
import pytest
from problems import SETS
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import outlast
from outlast import TruncatedSVC

PARAMETERS = {
    "linear": {"kernel": "linear", "C": 0.3},
    "rbf": {"kernel": "rbf", "truncation": -0.5},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.5, "truncation": None},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01, "coef0": -0.5},
    "logistic": {"kernel": "rbf", "loss": "logistic"},
}


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
@pytest.mark.parametrize("name", ["wine", "sparse"])
def test_predictions_come_back_bit_for_bit(name, parameters, tmp_path):
    X, y = SETS[name]()
    model = TruncatedSVC(**parameters).fit(X, y)
    model.save(tmp_path / "model.outlast")
    again = outlast.load(tmp_path / "model.outlast")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for key, value in parameters.items():
        assert getattr(again, key) == value, key
    for attribute in ("objective_", "status_", "gap_", "solver_", "n_iter_", "n_features_in_"):
        assert getattr(again, attribute) == getattr(model, attribute), attribute
    np.testing.assert_array_equal(again.objective_trace_, model.objective_trace_)
    np.testing.assert_array_equal(again.support_, model.support_)


@pytest.mark.parametrize("names", [["no", "yes"], [-1, 1], ["é", "ж"]])
def test_classes_come_back(names, tmp_path):
    X, y = SETS["moons"]()
    model = TruncatedSVC().fit(X, np.array(names)[y])
    model.save(str(tmp_path / "model"))
    again = outlast.load(str(tmp_path / "model"))
    assert again.classes_.tolist() == names
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    X, y = SETS["moons"]()
    TruncatedSVC().fit(X, y).save(tmp_path / "model")
    again = outlast.load(tmp_path / "model")
    assert not hasattr(again, "margins_")
    assert again.set_params(warm_start=True).fit(X, y).margins_.shape == (len(y),)


def test_a_clone_of_a_loaded_model_fits_the_same_problem(tmp_path):
    X, y = SETS["moons"]()
    y = np.array(["no", "yes"])[y]
    parameters = {"C": 3.0, "fit_intercept": False, "tol": 1e-7, "max_iter": 50, "solver": "kernel-smo"}
    model = TruncatedSVC(class_weight={"no": 2.0, "yes": 0.5}, **parameters).fit(X, y)
    model.save(tmp_path / "model")
    again = clone(outlast.load(tmp_path / "model"))
    for key, value in {**parameters, "class_weight": {"no": 2.0, "yes": 0.5}}.items():
        assert getattr(again, key) == value, key
    assert again.fit(X, y).objective_ == model.objective_
    balanced = TruncatedSVC(class_weight="balanced").fit(X[10:], y[10:])
    balanced.save(tmp_path / "model")
    assert clone(outlast.load(tmp_path / "model")).fit(X[10:], y[10:]).objective_ == balanced.objective_


def test_names_of_columns_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = SETS["moons"]()
    frame = pd.DataFrame(X, columns=["left", "right"])
    TruncatedSVC().fit(frame, y).save(tmp_path / "model")
    again = outlast.load(tmp_path / "model")
    assert list(again.feature_names_in_) == ["left", "right"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["right", "left"]])


def test_a_folder_that_is_not_there_is_named(tmp_path):
    X, y = SETS["moons"]()
    model = TruncatedSVC().fit(X, y)
    path = tmp_path / "absent" / "model"
    for write in (model.save, lambda path: model.export(path, "json"), outlast.audit(X, y).to_csv, outlast.audit(X, y).to_html):
        with pytest.raises(FileNotFoundError) as refused:
            write(path)
        assert refused.value.filename == str(path) and ".tmp" not in str(refused.value)


def test_what_can_not_be_read_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError) as refused:
        outlast.load(tmp_path / "absent")
    assert refused.value.filename == str(tmp_path / "absent")
    (tmp_path / "foreign").write_text("not a model\n")
    with pytest.raises(ValueError, match="foreign"):
        outlast.load(tmp_path / "foreign")
    X, y = SETS["moons"]()
    TruncatedSVC().fit(X, y).save(tmp_path / "model")
    data = bytearray((tmp_path / "model").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        outlast.load(tmp_path / "damaged")


def test_a_callable_kernel_is_not_stored(tmp_path):
    X, y = SETS["moons"]()
    with pytest.raises(ValueError, match="callable"):
        TruncatedSVC(kernel=rbf_kernel).fit(X, y).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
