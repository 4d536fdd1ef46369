"""What the pictures mark, and what they refuse."""

import matplotlib
import pandas
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from outlast import LqSVC, LqSVCCV, TruncatedSVC, TruncatedSVCCV, plot

matplotlib.use("Agg")

X, Y = make_moons(100, noise=0.3, random_state=0)
OTHERS, THEIRS = make_moons(100, noise=0.3, random_state=1)
GROUPS, KINDS = make_blobs(90, 2, centers=3, cluster_std=3.0, random_state=0)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("model", [TruncatedSVC(), TruncatedSVC(kernel="linear"), TruncatedSVCCV([1.0, 10.0], cv=2), LqSVC()])
def test_support_vectors_are_marked_among_the_training_rows_alone(model):
    model.fit(X, Y)
    assert "support vector" in legend(plot.decision_boundary(model, X, Y))
    assert legend(plot.decision_boundary(model, OTHERS, THEIRS)) == ["0", "1"]
    assert legend(plot.decision_boundary(model, X[:40], Y[:40])) == ["0", "1"]


def test_many_classes_are_told_by_their_margins():
    model = TruncatedSVC().fit(GROUPS, KINDS)
    assert "support vector" in legend(plot.decision_boundary(model, GROUPS, KINDS))
    assert legend(plot.decision_boundary(model, GROUPS[::-1], KINDS[::-1])) == ["0", "1", "2"]


def test_paths_name_the_columns_that_count():
    frame = pandas.DataFrame(X, columns=["wide", "high"])
    assert legend(plot.coefficient_path(LqSVCCV(Cs=[0.1, 1.0], qs=[1.0], cv=2).fit(frame, Y))) in (["wide", "high"], ["high", "wide"], ["high"])
    squares = LqSVCCV(Cs=[10.0], qs=[2.0], cv=2, feature_map="squares").fit(GROUPS, KINDS)
    shown = legend(plot.coefficient_path(squares))
    assert len(shown) == 10 and any(text.startswith("column 1²") for text in shown)
    assert all(text.rsplit("class ", 1)[1] in "012" for text in shown)


def test_what_has_no_picture_is_refused():
    model = TruncatedSVC().fit(X, Y)
    with pytest.raises(TypeError, match="not Pipeline: of a pipeline pass the last step"):
        plot.decision_boundary(make_pipeline(StandardScaler(), TruncatedSVC()).fit(X, Y), X, Y)
    with pytest.raises(TypeError, match="X is sparse"):
        plot.decision_boundary(model, sparse.csr_matrix(X), Y)
    with pytest.raises(TypeError, match="searched a grid"):
        plot.tuning(model)
    with pytest.raises(TypeError, match="searched a grid, like TruncatedSVCCV, not GridSearchCV"):
        plot.tuning(GridSearchCV(TruncatedSVC(), {"C": [1.0]}, cv=2).fit(X, Y))
    for picture in (plot.margins, plot.objective_trace):
        with pytest.raises(TypeError, match="model must be an estimator of outlast, not SVC"):
            picture(SVC().fit(X, Y))
    with pytest.raises(TypeError, match="LqSVCCV, which has a path, not TruncatedSVC"):
        plot.coefficient_path(model)


def test_as_many_axes_as_there_are_pictures():
    from matplotlib import pyplot

    several, single = LqSVCCV(Cs=[0.1, 1.0], qs=[1.0], cv=2).fit(X, Y), TruncatedSVCCV([0.1, 1.0], cv=2).fit(X, Y)
    for count in (1, 3):
        with pytest.raises(ValueError, match="axes must be a sequence of 2 of matplotlib's axes"):
            plot.tuning(several, pyplot.subplots(1, count)[1])
    with pytest.raises(ValueError, match="axes must be one of matplotlib's axes"):
        plot.tuning(single, pyplot.subplots(1, 2)[1])
    for axes in (pyplot.subplots(1, 2)[1], list(pyplot.subplots(1, 2)[1])):
        assert plot.tuning(several, axes) is axes
    one = pyplot.subplots()[1]
    assert plot.tuning(single, one) is one
    pyplot.close("all")
