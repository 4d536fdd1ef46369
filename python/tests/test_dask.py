"""Fits to dask collections, against fits to the same rows in memory and the objective written out."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import outlast

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import distributed  # noqa: E402
import pandas as pd  # noqa: E402
from clusters import CLOSE, SMALL, cluster, margins, objective, rows, slowly, threads  # noqa: E402, F401

import outlast.dask as od  # noqa: E402
import outlast.dask._engine  # noqa: E402


@pytest.mark.parametrize("where", ["threads", "cluster"])
@pytest.mark.parametrize("k, truncation", [(2, None), (2, "auto"), (3, "auto")])
def test_any_number_of_parts_gives_the_same_answer_as_one_machine(k, truncation, where, request):
    request.getfixturevalue(where)
    X, y = rows(k=k, n=60_000)
    one = outlast.TruncatedSVC(0.1, kernel="linear", truncation=truncation).fit(X, y)
    others = [(60_000,), (30_000, 30_000), (15_000,) * 4, (1, 0, 40_000, 7, 0, 19_992)]
    for chunks in [(3_750,) * 16, *(others if where == "threads" else [])]:
        model = od.TruncatedSVC(0.1, truncation=truncation, memory=SMALL)
        model.fit(da.from_array(X, chunks=(chunks, -1)), da.from_array(y, chunks=(chunks,)))
        assert model.solver_ == "linear-stream"
        assert model.status_ == "converged"
        assert model.partition_rows_.tolist() == list(chunks)
        assert model.objective_ == pytest.approx(objective(model, X, y), rel=1e-9)
        assert model.objective_ <= one.objective_ * (1 + CLOSE)
        if truncation is None:
            assert model.objective_ == pytest.approx(one.objective_, rel=1e-6)
        # sums, not rows: (d + 1) k squared and some, for each part; only a sample and what is gathered are rows, within bounds
        assert np.median(model.bytes_per_pass_) < 4000 * len(chunks) * (1 if k == 2 else 9)


def test_it_works_without_a_client(threads):
    X, y = rows()
    model = od.TruncatedSVC(0.1, truncation=None, memory=SMALL).fit(da.from_array(X, chunks=(9000, 5)), y)
    one = outlast.TruncatedSVC(0.1, truncation=None, kernel="linear").fit(X, y)
    assert model.objective_ == pytest.approx(one.objective_, rel=1e-6)


def test_more_columns_than_matrices_are_sent_for(cluster):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3_000, 2_100))
    X[:, ::3] += 50.0
    X = X.astype(np.float32).astype(np.float64)
    y = (X[:, :4].sum(axis=1) - 100.0 + rng.standard_normal(3_000) > 0).astype(int)
    parts = da.from_array(X, chunks=(900, -1)), da.from_array(y, chunks=900)
    sparse = od.LqSVC(0.01, q=1.0, memory=SMALL).fit(*parts)
    assert (sparse.solver_, sparse.status_) == ("linear-stream-columns", "converged")
    one = outlast.LqSVC(0.01, q=1.0).fit(X, y)
    assert sparse.objective_ == pytest.approx(one.objective_, rel=CLOSE)
    np.testing.assert_array_equal(sparse.coef_ != 0, one.coef_ != 0)
    model = od.TruncatedSVC(1e-5, truncation=None, memory=SMALL).fit(*parts)
    assert (model.solver_, model.status_) == ("linear-stream-cg", "converged")
    assert model.objective_ == pytest.approx(objective(model, X, y), rel=1e-9)
    assert model.objective_ <= outlast.TruncatedSVC(1e-5, kernel="linear", truncation=None).fit(X, y).objective_ * (1 + CLOSE)
    # vectors there and back for each part, and the point; matrices would be 35 MB
    assert np.median(model.bytes_per_pass_) < 8 * 2_101 * 10 * len(model.partition_rows_)


@pytest.mark.parametrize(
    "rows, holders, threads, wanted",
    [
        ([10, 10, 10, 10], "aaab", {"a": 1, "b": 1}, "baab"),
        ([10, 10, 10], "aab", {"a": 2, "b": 1}, "aab"),
        ([5, 1, 1], ["a", None, "a"], {"a": 1, "b": 1, "c": 1}, "abc"),
        ([10], "b", {"a": 2, "b": 1}, "b"),
        ([0, 0], "aa", {"a": 1, "b": 1}, "aa"),
        ([], "", {"a": 1}, ""),
    ],
)
def test_parts_move_to_workers_that_would_wait(rows, holders, threads, wanted):
    assert od._engine.balanced(rows, list(holders), threads) == list(wanted)


def test_a_thread_of_a_worker_asks_its_parts_one_after_the_other():
    rows, workers = [5, 1, 0, 4, 9, 2], ["a", "b", "a", "a", "b", "a"]
    made = od._engine.lanes(rows, workers, {"a": 2, "b": 1})
    assert sorted(part for lane in made for part in lane) == list(range(6))
    assert all(len({workers[part] for part in lane}) == 1 and lane == sorted(lane) for lane in made)
    # two threads share 11 rows as 5 and 6; the other worker has one
    assert sorted(sum(rows[part] for part in lane) for lane in made) == [5, 6, 10]
    # more threads than parts, and a worker nobody knows of any more
    assert od._engine.lanes([3, 3], ["a", "c"], {"a": 4}) == [[0], [1]]


def test_rows_that_are_not_aligned():
    # as they may be after a journey: 8-byte numbers at an odd address
    X, y = rows(n=500)
    shifted = np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    assert not shifted.flags.aligned
    model = outlast.TruncatedSVC(kernel="linear").fit(shifted, y)
    np.testing.assert_array_equal(model.predict(shifted), model.predict(X))


def test_few_rows_are_fitted_here_and_equal_the_fit_in_memory():
    X, y = rows(n=2000)
    one = outlast.TruncatedSVC(1.0, kernel="linear").fit(X, y)
    model = od.TruncatedSVC(1.0).fit(da.from_array(X, chunks=(300, 5)), y)
    assert model.passes_ == 1
    assert model.objective_ == pytest.approx(one.objective_, rel=1e-9)
    np.testing.assert_allclose(model.coef_, one.coef_, rtol=1e-6)


def test_weights_intercept_classes_and_columns_far_from_zero():
    X, y = rows()
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, len(y)).astype(float)
    X[:, 1] += 1e6  # as 32 bits are, this would leave one digit in ten
    X = np.ascontiguousarray(X)
    names = np.array(["no", "yes"])[y]
    # the first part is too small to tell that a column is far from 0
    first = ((10, 20_000, 20_000, 19_990), 5)
    parts = [da.from_array(part, chunks=size) for part, size in [(X, first), (names, 7000), (weights, 20_000)]]
    model = od.TruncatedSVC(0.1, truncation=None, class_weight="balanced", memory=SMALL).fit(*parts)
    one = outlast.TruncatedSVC(0.1, kernel="linear", truncation=None, class_weight="balanced").fit(X, names, weights)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.objective_ == pytest.approx(one.objective_, rel=1e-5)
    plain = od.TruncatedSVC(0.1, fit_intercept=False, truncation=None, memory=SMALL).fit(da.from_array(X[:, [0, 2]], chunks=(9000, 2)), y)
    assert plain.intercept_.tolist() == [0.0]
    one = outlast.TruncatedSVC(0.1, fit_intercept=False, truncation=None, kernel="linear").fit(X[:, [0, 2]], y)
    assert plain.objective_ == pytest.approx(one.objective_, rel=1e-6)


def test_dataframes_on_workers_and_what_they_predict(cluster):
    X, y = rows(n=40_000, k=3)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["label"] = np.array(["x", "y", "z"])[y]
    # sorted by class: most parts lack two of the three; and one is empty
    frame = frame.sort_values("label", ignore_index=True)
    parts = dd.from_pandas(frame, npartitions=5)
    parts = dd.concat([parts.partitions[:2], parts.partitions[[0]].query("a > 1e9"), parts.partitions[2:]])
    model = od.TruncatedSVC(0.1, memory=SMALL).fit(parts[list("abcde")], parts["label"])
    assert 0 in model.partition_rows_ and model.partition_rows_.sum() == len(frame)
    one = outlast.TruncatedSVC(0.1, kernel="linear").fit(frame[list("abcde")], frame["label"])
    assert model.objective_ <= one.objective_ * (1 + CLOSE)
    assert model.feature_names_in_.tolist() == list("abcde")
    predicted = model.predict(parts[list("abcde")])
    assert isinstance(predicted, da.Array)
    assert (predicted.compute() == one.predict(frame[list("abcde")])).mean() > 0.999
    values = model.decision_function(da.from_array(X, chunks=(9000, 5)))
    assert values.shape == (40_000, 3)
    np.testing.assert_allclose(values.compute(), X @ model.coef_.T + model.intercept_, atol=1e-9)
    share = model.score(parts[list("abcde")], parts["label"])
    assert share == pytest.approx((predicted.compute() == frame["label"]).mean())
    assert isinstance(model.predict(X[:5]), np.ndarray)


def test_frames_with_columns_of_several_kinds(cluster):
    X, y = rows(n=3000)
    frame = pd.DataFrame(X, columns=list("abcde")).astype({"a": np.float32})
    frame["b"], frame["c"], frame["d"] = frame["b"] > 0, (4 * frame["c"]).astype(int), frame["d"].astype("Float64")
    parts = dd.from_pandas(frame, npartitions=3)
    for columns in [list("abcde"), ["b"], ["a"]]:
        model = od.TruncatedSVC(0.1).fit(parts[columns], dd.from_pandas(pd.Series(y), npartitions=3))
        one = outlast.TruncatedSVC(0.1, kernel="linear").fit(frame[columns].astype(float), y)
        assert model.objective_ == pytest.approx(one.objective_, rel=1e-6)
        np.testing.assert_array_equal(model.predict(parts[columns]).compute(), one.predict(frame[columns].astype(float)))
        drawn = od.TruncatedSVC(0.1, kernel_approximation="nystroem", n_components=5).fit(parts[columns], dd.from_pandas(pd.Series(y), npartitions=3))
        f = drawn.map_.transform(frame[columns].to_numpy(float)) @ drawn.coef_[0] + drawn.intercept_[0]
        np.testing.assert_allclose(drawn.decision_function(parts[columns]).compute(), f, atol=1e-6)


def test_a_worker_killed_in_mid_fit():
    X, y = rows(n=60_000)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            blocks = da.from_array(X, chunks=(10_000, 5)).map_blocks(slowly, dtype=X.dtype)
            model = od.TruncatedSVC(0.1, memory=SMALL)
            killed = []
            first = cluster.workers[0].pid

            def kill(dask_worker=None):
                # after some passes, so that it is the fit that loses its parts
                while len(getattr(model, "history_", [])) < 4:
                    time.sleep(0.005)
                os.kill(first, signal.SIGKILL)
                killed.append(len(model.history_))

            thread = threading.Thread(target=kill, daemon=True)
            thread.start()
            model.fit(blocks, y, client=client)
            thread.join()
            assert killed and killed[0] < len(model.history_)
    whole = od.TruncatedSVC(0.1, memory=SMALL).fit(da.from_array(X, chunks=(10_000, 5)), y)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-9)


def test_an_interrupt_ends_the_fit_and_leaves_the_cluster_alone(cluster):
    X, y = rows(n=60_000)

    class Stop(Exception):
        pass

    class Stopped(od.TruncatedSVC):
        def _recorded(self, engine, report):
            def record(stage, step, objective, gap):
                if engine.passes >= 3:
                    raise Stop
                return False

            return record

    with pytest.raises(Stop):
        Stopped(0.1, memory=SMALL).fit(da.from_array(X, chunks=(10_000, 5)), y)
    deadline = time.monotonic() + 10
    while cluster.processing() and any(cluster.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(cluster.processing().values())
    limited = od.TruncatedSVC(0.1, memory=SMALL, time_limit=1e-3)
    with pytest.warns(match="time_limit"):
        limited.fit(da.from_array(X, chunks=(10_000, 5)), y)
    assert limited.status_ == "time_limit"


def test_reading_counts_towards_the_time_limit(threads):
    X, y = rows(n=60_000)

    def slowly(block):
        time.sleep(3.0)
        return block

    slow = da.from_array(X, chunks=(60_000, 5)).map_blocks(slowly, dtype=X.dtype, meta=X[:0])
    limited = od.TruncatedSVC(0.1, memory=SMALL, time_limit=2.9)
    with pytest.warns(match="time_limit"):
        limited.fit(slow, y)
    assert limited.status_ == "time_limit"


def test_a_class_that_the_sample_lacks_is_not_lost(threads):
    X, y = rows(n=60_000)
    y[:] = 0
    # rows are drawn by a key, SplitMix64 of their number; no sample has those of the largest
    key = np.arange(1, 60_001, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
    rare = np.argsort(key ^ (key >> np.uint64(31)))[-30:]
    y[rare], X[rare, 0] = 1, X[:, 0].max() - 1 + np.arange(30) % 4
    parts = da.from_array(X, chunks=(7_000, 5)), y
    found = od.LqSVC(1.0, q=0.5, memory=SMALL, random_state=0).fit(*parts)
    wanted = outlast.LqSVC(1.0, q=0.5).fit(X, y)
    assert np.any(found.coef_) and found.objective_ <= wanted.objective_ * (1 + CLOSE)


def held_by(client):
    """How many tasks the scheduler knows, and how many of them are to be run."""
    return client.run_on_scheduler(lambda dask_scheduler: (len(dask_scheduler.tasks), sum(t.state in ("processing", "waiting") for t in dask_scheduler.tasks.values())))


@pytest.mark.parametrize("meanwhile", ["reading", "fitting"])
@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_ctrl_c_ends_a_fit(where, meanwhile, request):
    client = request.getfixturevalue(where)
    before = None if client is None else held_by(client)[0]
    X, y = rows(n=60_000)
    blocks = da.from_array(X, chunks=(5_000, 5))
    if meanwhile == "reading":
        blocks = blocks.map_blocks(slowly, dtype=X.dtype)
    model = od.TruncatedSVC(0.1, memory=SMALL)
    pressed = []

    def press():
        if meanwhile == "reading":
            time.sleep(0.3)
        while meanwhile == "fitting" and not getattr(model, "history_", []):
            time.sleep(0.001)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press, daemon=True)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        model.fit(blocks, y)
        # a signal that comes after the last pass is met here
        thread.join()
    # a task that has begun is not cut off, all others are
    assert time.monotonic() - pressed[0] < 1.5
    assert not hasattr(model, "coef_") and len(getattr(model, "history_", [])) < 10
    if client is not None:
        deadline = time.monotonic() + 1.5
        while held_by(client) > (before, 0) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert held_by(client) <= (before, 0)
    # and the next fit is as any other
    one = outlast.TruncatedSVC(0.1, kernel="linear", truncation=None).fit(X, y)
    again = model.set_params(truncation=None).fit(da.from_array(X, chunks=(30_000, 5)), y)
    assert again.objective_ == pytest.approx(one.objective_, rel=1e-6)


def failing(block):
    raise RuntimeError("no such rows")


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_progress_is_shown_from_the_first_row_on(where, request, capsys):
    request.getfixturevalue(where)
    X, y = rows(n=40_000)
    parts = da.from_array(X, chunks=(10_000, 5))
    model = od.TruncatedSVC(0.1, truncation=None, memory=SMALL).fit(parts, y)
    assert capsys.readouterr().out == ""
    model.set_params(verbose=1).fit(parts, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[outlast] reading, step 0"
    assert len(lines) == len(model.history_) + 2 > 4
    assert lines[-1].startswith(f"[outlast] converged, objective {model.objective_:.8g}")
    with pytest.raises(RuntimeError, match="no such rows"):
        model.fit(parts.map_blocks(failing, dtype=X.dtype), y)
    assert capsys.readouterr().out == "[outlast] reading, step 0\n"


def test_what_cannot_be_fitted_is_refused_by_name():
    X, y = rows(n=1000)
    blocks, labels = da.from_array(X, chunks=(250, 5)), da.from_array(y, chunks=250)

    def refusal(*data, **parameters):
        with pytest.raises((ValueError, TypeError)) as refused:
            od.TruncatedSVC(**parameters).fit(*data)
        return str(refused.value)

    unknown = blocks[blocks[:, 0] > 0]
    assert "unknown chunk sizes" in refusal(unknown, labels[blocks[:, 0] > 0])
    assert "compute_chunk_sizes" in refusal(unknown, labels)
    assert "1000 rows" in refusal(blocks, labels[:999])
    assert "numbers" in refusal(blocks.astype(str), labels)
    assert "outlast itself" in refusal(X, y)
    hole = X.copy()
    hole[600, 3] = np.nan
    message = refusal(da.from_array(hole, chunks=(250, 5)), labels)
    assert "partition 2" in message and "row 100, column 3" in message and "NaN" in message
    mixed = da.concatenate([da.from_array(np.array(["a", "b"] * 250, dtype=object), chunks=250), da.from_array(y[500:].astype(object), chunks=250)])
    message = refusal(blocks, mixed)
    assert "text" in message and "numbers" in message
    assert "not a class" in refusal(blocks, labels + 0.5)
    assert "greater than one" in refusal(blocks, labels * 0)
    assert "weight of -1" in refusal(blocks, labels, labels - 1.0)
    assert "C = -1" in refusal(blocks, labels, C=-1.0)
    frame = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": ["text"] * 1000}), npartitions=3)
    assert "column 'b'" in refusal(frame, frame["a"])
    assert "partitions" in refusal(frame[["a"]], dd.from_pandas(pd.Series(y), npartitions=4))
    assert "dask series" in refusal(frame[["a"]], y)


def test_a_saved_model_is_one_of_the_package(tmp_path):
    X, y = rows(n=3000)
    model = od.TruncatedSVC(1.0).fit(da.from_array(X, chunks=(1000, 5)), y)
    model.save(tmp_path / "model")
    assert (outlast.load(tmp_path / "model").predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("k", [2, 3])
def test_capped_and_lq_machines(k, cluster):
    X, y = rows(n=40_000, k=k)
    parts = da.from_array(X, chunks=((15_000, 0, 25_000), 5))
    for one, many in [
        (outlast.CappedSVC(0.1, p=2.0, cap=4.0), od.CappedSVC(0.1, p=2.0, cap=4.0, memory=SMALL)),
        (outlast.CappedSVC(0.1, p=1.0, cap=2.0), od.CappedSVC(0.1, p=1.0, cap=2.0, memory=SMALL)),
        (outlast.LqSVC(0.001, q=1.0), od.LqSVC(0.001, q=1.0, memory=SMALL)),
        (outlast.LqSVC(0.001, q=0.5), od.LqSVC(0.001, q=0.5, memory=SMALL)),
        (
            outlast.TruncatedSVC(0.01, kernel="linear", penalty="l1"),
            od.TruncatedSVC(0.01, penalty="l1", memory=SMALL),
        ),
    ]:
        one.fit(X, y)
        many.fit(parts, y)
        assert many.solver_ == "linear-stream" and many.status_ == "converged"
        assert many.objective_ <= one.objective_ * (1 + CLOSE), (many, many.objective_ / one.objective_ - 1)
        assert (many.predict(X) == one.predict(X)).mean() > 0.99
    rule = od.CappedSVC(0.1, p=2.0, memory=SMALL).fit(parts, y)
    beyond = (np.maximum(0, 1 - np.where(y[:, None] == (np.arange(k) if k > 2 else [1]), 1, -1) * (X @ rule.coef_.T + rule.intercept_)) ** 2).sum(axis=1)
    assert np.mean(beyond > rule.cap_) == pytest.approx(0.1, abs=0.02)


def capped_squares(theta, Z, sign, C, cap):
    """The objective of a capped squared hinge, the last entry of theta being the intercept."""
    return 0.5 * theta[:-1] @ theta[:-1] + C * np.minimum(np.maximum(0, 1 - sign * (Z @ theta)) ** 2, cap).sum()


def lowered(theta, Z, sign, C, cap, rounds=20):
    """Majorise-minimise steps with Newton's method for each: rows beyond the cap are left out, then the squares of the others are minimised."""
    ridge = np.diag(np.r_[np.ones(len(theta) - 1), 0.0])
    for _ in range(rounds):
        kept = np.maximum(0, 1 - sign * (Z @ theta)) ** 2 < cap
        A, y = Z[kept], sign[kept]
        for _ in range(20):
            active = 1 - y * (A @ theta) > 0
            R = A[active]
            step = np.linalg.solve(ridge + 2 * C * R.T @ R, ridge @ theta - 2 * C * R.T @ (y[active] - R @ theta))
            theta = theta - step
            if np.abs(step).max() < 1e-12:
                break
    return theta


@pytest.mark.parametrize("d", [20, 100])
def test_capped_squares_of_classes_that_overlap(d):
    """Where rows lie near their cap steps are many and small; the end is one that others can't lower."""
    rng = np.random.default_rng(d)
    n, C, cap = 50_000, 0.1, 2.0
    y = rng.integers(0, 2, n)
    X = (rng.standard_normal((n, d)) + 0.3 * (2 * y[:, None] - 1) * rng.standard_normal(d)).astype(np.float32).astype(float)
    y = np.where(rng.random(n) < 0.1, 1 - y, y)
    model = od.CappedSVC(C, p=2.0, cap=cap, memory=SMALL).fit(da.from_array(X, chunks=(20_000, d)), y)
    assert model.solver_ == "linear-stream" and model.status_ == "converged"
    Z, sign = np.column_stack([X, np.ones(n)]), np.where(y == 1, 1.0, -1.0)
    theta = np.r_[model.coef_[0], model.intercept_]
    here = capped_squares(theta, Z, sign, C, cap)
    assert model.objective_ == pytest.approx(here, rel=1e-9)
    assert capped_squares(lowered(theta, Z, sign, C, cap), Z, sign, C, cap) >= here * (1 - CLOSE)
    # another start may lead to another end
    assert here <= outlast.CappedSVC(C, p=2.0, cap=cap).fit(X, y).objective_ * (1 + 20 * CLOSE)


@pytest.mark.parametrize("k, n", [(2, 34_000), (3, 14_000)])
def test_weights_of_rows_with_every_method_on_workers(k, n, cluster):
    X, y = rows(n=n, k=k, d=4)
    weights = np.random.default_rng(2).integers(0, 3, n).astype(float)
    chunks = (5_000, 0, n - 5_000)
    parts = da.from_array(X, chunks=(chunks, 4)), da.from_array(y, chunks=(chunks,)), da.from_array(weights, chunks=(chunks,))
    for one, many in [
        (outlast.TruncatedSVC(0.01, kernel="linear", penalty="adaptive_l1"), od.TruncatedSVC(0.01, penalty="adaptive_l1", memory=SMALL)),
        (outlast.CappedSVC(0.1, p=2.0, cap=4.0), od.CappedSVC(0.1, p=2.0, cap=4.0, memory=SMALL)),
        (outlast.LqSVC(0.001), od.LqSVC(0.001, memory=SMALL)),
    ]:
        one.fit(X, y, weights)
        many.fit(*parts)
        assert (many.solver_, many.status_) == ("linear-stream", "converged")
        assert many.objective_ <= one.objective_ * (1 + CLOSE), (many, many.objective_ / one.objective_ - 1)
        assert (many.predict(X) == one.predict(X)).mean() > 0.99
    # the last is convex: the same as if every row were there so many times
    copies = np.repeat(np.arange(n), weights.astype(int))
    again = od.LqSVC(0.001, memory=SMALL).fit(da.from_array(X[copies], chunks=(9_000, 4)), y[copies])
    assert again.solver_ == "linear-stream" and again.objective_ == pytest.approx(many.objective_, rel=CLOSE)


@pytest.mark.parametrize("truncation", [None, "auto"])
def test_the_weighted_method_on_workers(truncation, cluster):
    X, y = rows(n=14_000, k=3, d=4)
    utility = np.array([[3.0, 0.0, 1.0], [0.0, 1.0, 0.5], [0.0, 0.2, 2.0]])
    weights = np.random.default_rng(2).integers(1, 3, len(y)).astype(float)
    one = outlast.TruncatedSVC(0.01, kernel="linear", utility=utility, truncation=truncation).fit(X, y, weights)
    many = od.TruncatedSVC(0.01, utility=utility, truncation=truncation, memory=SMALL)
    many.fit(da.from_array(X, chunks=(5_000, 4)), y, da.from_array(weights, chunks=14_000))
    assert (many.solver_, many.status_) == ("linear-stream", "converged")
    # every decision j of a row is a term of weight U[y, j], of the margin that j would have
    f = X @ many.coef_.T + many.intercept_
    hinge = np.stack([np.maximum(0, 1 - margins(f, np.full(len(y), j))) for j in range(3)], axis=1)
    if truncation is not None:
        hinge = np.minimum(hinge, 1.5)
    written_out = 0.5 * (many.coef_**2).sum() + 0.01 * (weights[:, None] * utility[y] * hinge).sum()
    assert many.objective_ == pytest.approx(written_out, rel=1e-9)
    assert many.objective_ <= one.objective_ * (1 + CLOSE)
    assert (many.predict(X) == one.predict(X)).mean() > 0.99
