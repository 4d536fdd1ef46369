"""What scikit-learn's users do with estimators, done with every one of them."""

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from estimators import CLASSES, ONE_OF_EACH, name, small
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

X, Y = make_classification(60, 4, flip_y=0.1, random_state=0)
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"])
EACH = pytest.mark.parametrize("estimator", ONE_OF_EACH, ids=name)

pytestmark = pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")


def takes_weights(estimator):
    return "sample_weight" in estimator.fit.__code__.co_varnames


def fitted(estimator, *arguments):
    return clone(estimator).fit(X, Y, *arguments)


@EACH
def test_clone_keeps_parameters_and_drops_the_fit(estimator):
    model = fitted(estimator)
    copy = clone(model)
    assert repr(copy) == repr(model)
    with pytest.raises(NotFittedError):
        copy.predict(X)


@EACH
def test_pickle_and_joblib_keep_everything(estimator, tmp_path):
    model = fitted(estimator)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(buffer)):
        assert repr(again) == repr(model)
        assert_array_equal(again.decision_function(X), model.decision_function(X))
        public = [key for key in vars(model) if key.endswith("_") and not key.startswith("_")]
        assert {"classes_", "objective_", "margins_", "n_features_in_"} <= set(public)
        for key in public:
            np.testing.assert_equal(getattr(again, key), getattr(model, key), err_msg=key)


@EACH
def test_set_params_is_the_constructor(estimator):
    model = clone(estimator)
    parameters = model.get_params()
    other = {"tol": 0.5, "n_jobs": 1, "verbose": 0} | ({"C": 3.5} if "C" in parameters else {})
    model.set_params(**other)
    assert model.get_params() == {**parameters, **other}
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        model.set_params(nonsense=1)
    # parameters are looked at in fit, not before
    assert type(model)(tol="much").tol == "much"
    with pytest.raises(TypeError, match=r"\btol\b"):
        clone(estimator).set_params(tol="much").fit(X, Y)


@EACH
def test_searches_and_pipelines(estimator):
    steps = make_pipeline(StandardScaler(), clone(estimator))
    step = steps.steps[-1][0]
    search = GridSearchCV(steps, {f"{step}__tol": [1e-2, 1e-4]}, cv=2, error_score="raise").fit(X, Y)
    assert search.best_score_ > 0.6
    assert steps.fit(FRAME, Y).score(FRAME, Y) > 0.6


@EACH
def test_cross_validation(estimator):
    predicted = cross_val_predict(clone(estimator), X, Y, cv=2)
    assert set(predicted) <= {0, 1} and np.mean(predicted == Y) > 0.6
    values = cross_val_predict(clone(estimator), X, Y, cv=2, method="decision_function")
    assert_array_equal(predicted, values > 0)
    scores = cross_validate(clone(estimator), X, Y, cv=2, scoring=["roc_auc", "accuracy"], n_jobs=2)
    assert np.isfinite(scores["test_roc_auc"]).all()


@EACH
def test_calibration(estimator):
    model = CalibratedClassifierCV(clone(estimator), method="sigmoid", cv=2).fit(X, Y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert log_loss(Y, p) < log_loss(Y, np.full(len(Y), 0.5))


@EACH
def test_names_and_widths(estimator):
    model = clone(estimator).fit(FRAME, Y)
    assert list(model.feature_names_in_) == list("abcd") and model.n_features_in_ == 4
    assert_array_equal(model.predict(FRAME), fitted(estimator).predict(X))
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        model.predict(FRAME[list("dcba")])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)
    unnamed = fitted(estimator)
    assert not hasattr(unnamed, "feature_names_in_")
    with pytest.raises(ValueError, match=f"X has 3 features, but {type(model).__name__} is expecting 4 features as input"):
        unnamed.predict(X[:, :3])


@EACH
def test_tags(estimator):
    assert is_classifier(estimator)
    tags = get_tags(estimator)
    assert tags.input_tags.sparse and not tags.input_tags.pairwise and not tags.input_tags.allow_nan
    assert tags.classifier_tags.multi_class and tags.target_tags.required and not tags.no_validation
    if "kernel" in estimator.get_params():
        assert get_tags(clone(estimator).set_params(kernel="precomputed")).input_tags.pairwise


@EACH
def test_weights_are_routed(estimator):
    weights = np.where(np.arange(60) < 30, 2.0, 0.5)
    if not takes_weights(estimator):
        assert not estimator.get_metadata_routing().fit.requests
        return
    with config_context(enable_metadata_routing=True):
        asking = clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(asking, {"tol": [1e-4]}, cv=2).fit(X, Y, sample_weight=weights)
        expected = fitted(search.best_estimator_, weights)
        assert_array_equal(search.best_estimator_.decision_function(X), expected.decision_function(X))
        not_asking = GridSearchCV(asking.set_fit_request(sample_weight=False), {"tol": [1e-4]}, cv=2)
        with pytest.raises(TypeError, match="sample_weight"):
            not_asking.fit(X, Y, sample_weight=weights)
    assert not np.array_equal(expected.decision_function(X), fitted(expected).decision_function(X))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_three_text_classes(kind):
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])]
    model = small(kind).fit(X, y)
    assert list(model.classes_) == ["low", "mid", "top"]
    assert model.decision_function(X).shape == (60, 3)
    assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
