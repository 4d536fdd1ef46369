"""What the tests of fits to dask collections share: rows, the objective written out, and where tasks run."""

import time

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import distributed  # noqa: E402

import outlast.dask  # noqa: E402

#: Enough for the sample of some thousand rows, so that the rows of most tests are more than that.
SMALL = "64MB"
CLOSE = 1e-4


def rows(n=60_000, d=5, k=2, seed=0, wrong=0.08):
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.standard_normal((k, d))
    y = rng.integers(0, k, n)
    X = centres[y] + rng.standard_normal((n, d))
    flipped = rng.uniform(size=n) < wrong
    y = np.where(flipped, rng.integers(0, k, n), y)
    # 32 bits hold them, so that both fits see the same numbers
    return X.astype(np.float32).astype(np.float64), y


def margins(f, codes):
    """Of decision values, one function or one for each class."""
    if f.ndim == 1:
        return np.where(codes == 1, f, -f)
    others = f.copy()
    others[np.arange(len(codes)), codes] = -np.inf
    return f[np.arange(len(codes)), codes] - others.max(axis=1)


def objective(model, X, y, weights=None):
    """1/2 |w|^2 + C sum weight min(hinge, 1 - s) at the model, from its coefficients alone."""
    f = X @ model.coef_.T + model.intercept_
    s = -1.0 if f.shape[1] == 1 else -1 / (f.shape[1] - 1)
    loss = np.maximum(0, 1 - margins(f[:, 0] if f.shape[1] == 1 else f, np.searchsorted(model.classes_, y)))
    if model.truncation is not None:
        loss = np.minimum(loss, 1 - s)
    weights = np.ones(len(y)) if weights is None else weights
    return 0.5 * (model.coef_**2).sum() + model.C * (weights * loss).sum()


def slowly(block):
    time.sleep(0.2)
    return block


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; tasks go there from now on, unless `threads` says otherwise."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.fixture
def threads(monkeypatch):
    """No client, whatever clients there are."""
    monkeypatch.setattr(outlast.dask._engine, "current_client", lambda: None)
    with dask.config.set(scheduler="threads"):
        yield
