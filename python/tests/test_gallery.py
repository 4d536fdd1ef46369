"""Every example of the gallery runs and draws at least one picture."""

import runpy
from pathlib import Path

import pytest
from matplotlib import pyplot

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "gallery").glob("plot_*.py"))


@pytest.fixture
def canvas():
    """No window opens, and no figure is left over."""
    before = pyplot.get_backend()
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


def test_there_are_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_draws(path, canvas):
    runpy.run_path(str(path))
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()
        assert any(axes.has_data() for axes in figure.axes)
