"""What is shown while a fit runs, and scikit-learn's callbacks."""

import io
import sys
import types

import numpy as np
import pytest
from estimators import ONE_OF_EACH, name
from sklearn.base import clone
from sklearn.datasets import make_classification

import outlast
from outlast import TruncatedSVC

X, Y = make_classification(200, 4, flip_y=0.1, random_state=0)
CALLBACKS = hasattr(TruncatedSVC, "set_callbacks")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Called in a test, makes standard error a terminal; before that, pytest would put its own back."""

    def replace():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return replace


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ONE_OF_EACH, ids=name)
def test_a_terminal_gets_a_bar(estimator, terminal, capsys):
    terminal = terminal()
    clone(estimator).fit(X, Y)
    assert terminal.getvalue() == ""
    clone(estimator).set_params(verbose=1).fit(X, Y)
    shown = terminal.getvalue()
    *_, last = shown.rstrip("\n").split("\r")
    assert last.startswith("█" * 24) and f"{type(estimator).__name__}: converged, objective" in last and shown.endswith("\n")
    assert capsys.readouterr().out == ""


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ONE_OF_EACH, ids=name)
def test_a_bar_stays_in_its_line_and_never_goes_back(estimator, terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(outlast._progress, "_PAUSE", 0.0)
    terminal = terminal()
    clone(estimator).set_params(verbose=1).fit(X, Y)
    drawn = [line.removesuffix("\x1b[K") for line in terminal.getvalue().strip().split("\r")]
    assert max(len(line) for line in drawn) < 60
    full = [line.count("█") for line in drawn]
    assert full == sorted(full) and all(count < 24 for count in full[:-1] if not estimator_counts(estimator))


def estimator_counts(estimator):
    """Whether it knows how many steps there are, and may have made all of them before it ends."""
    return estimator._steps(X) is not None


def test_elsewhere_lines_are_printed(capsys):
    TruncatedSVC(verbose=1).fit(X, Y)
    assert "[outlast] truncated hinge, step 0, objective" in capsys.readouterr().out


def test_lines_are_printed_where_they_are_asked_for(terminal, capsys):
    terminal = terminal()
    TruncatedSVC(verbose=2).fit(X, Y)
    assert terminal.getvalue() == "" and "[outlast]" in capsys.readouterr().out


def test_a_notebook_gets_a_bar_of_its_own(monkeypatch, capsys):
    """With what IPython offers, in a kernel: `display` gives a handle that can be updated."""
    shown = []

    class Handle:
        def update(self, picture, raw):
            assert raw
            shown.append(picture)

    def display(picture, raw, display_id):
        assert raw and display_id and not shown
        shown.append(picture)
        return Handle()

    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    notebook.display = types.ModuleType("IPython.display")
    notebook.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    TruncatedSVC(verbose=1).fit(X, Y)
    assert len(shown) >= 2 and '<progress value="1.000" max="1">' in shown[-1]["text/html"]
    assert shown[-1]["text/plain"].startswith("100 % TruncatedSVC: converged") and capsys.readouterr().out == ""
    # IPython in a terminal is a terminal
    notebook.get_ipython = lambda: types.SimpleNamespace()
    TruncatedSVC(verbose=1).fit(X, Y)
    assert "[outlast]" in capsys.readouterr().out


def test_a_failed_fit_ends_its_line(terminal):
    terminal = terminal()
    with pytest.raises(ValueError, match="gamma"):
        TruncatedSVC(verbose=1, gamma=-1.0).fit(X, Y)
    assert "stopped" in terminal.getvalue()


class Recorder:
    """A callback by scikit-learn's protocol."""

    max_propagation_depth = None

    def __init__(self, end_after=None):
        self.events = []
        self.tasks = []
        self.end_after = end_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append("begin")
        self.tasks.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append("end")
        if fitted_estimator is not None:
            self.fitted, self.metadata, self.rows = fitted_estimator, metadata, len(X)
        return self.end_after is not None and len(self.tasks) > self.end_after


def test_callbacks_are_there_where_scikit_learn_has_them():
    try:
        import sklearn.callback  # noqa: F401
    except ImportError:
        assert not CALLBACKS
    else:
        assert CALLBACKS


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ONE_OF_EACH if CALLBACKS else [], ids=name)
def test_callbacks_see_every_step(estimator):
    recorder = Recorder()
    model = clone(estimator).set_callbacks(recorder).fit(X, Y)
    events = recorder.events
    assert events[0] == "setup" and events[-1] == "teardown"
    assert events[1:-1].count("begin") == events[1:-1].count("end") == len(recorder.tasks) >= 2
    assert recorder.tasks[0] == "fit"
    np.testing.assert_array_equal(recorder.fitted.predict(X), model.predict(X))
    assert recorder.rows == 200 and recorder.metadata is None


class CallbackTests:
    def test_weights_are_passed(self):
        recorder = Recorder()
        TruncatedSVC().set_callbacks(recorder).fit(X, Y, np.full(200, 2.0))
        np.testing.assert_array_equal(recorder.metadata["sample_weight"], np.full(200, 2.0))

    def test_a_callback_ends_the_fit_with_what_there_is(self):
        model = TruncatedSVC(C=100.0, kernel="rbf", gamma=1.0)
        many, few = Recorder(), Recorder(end_after=1)
        clone(model).set_callbacks(many).fit(X, Y)
        with pytest.warns(UserWarning, match="'interrupted'.*best model so far"):
            stopped = clone(model).set_callbacks(few).fit(X, Y)
        assert stopped.status_ == "interrupted" and len(few.tasks) < len(many.tasks)
        assert np.isfinite(stopped.decision_function(X)).all()
        assert few.events[-1] == "teardown"

    def test_what_a_callback_raises_ends_the_fit(self):
        class Failing(Recorder):
            def on_fit_task_begin(self, estimator, context):
                super().on_fit_task_begin(estimator, context)
                if len(self.tasks) == 2:
                    raise RuntimeError("enough")

        failing = Failing()
        with pytest.raises(RuntimeError, match="enough"):
            TruncatedSVC().set_callbacks(failing).fit(X, Y)
        assert failing.events[-1] == "teardown"

    def test_searches_pass_them_on(self):
        from sklearn.model_selection import GridSearchCV

        recorder = Recorder()
        GridSearchCV(TruncatedSVC(), {"C": [0.1, 1.0]}, cv=2).set_callbacks(recorder).fit(X, Y)
        assert recorder.events[0] == "setup" and recorder.events[-1] == "teardown"
        assert "truncated hinge" in recorder.tasks


if CALLBACKS:

    class TestCallbacks(CallbackTests):
        pass
