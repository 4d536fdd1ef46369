"""
The objective never rises
=========================

Every non-convex fit is a sequence of convex problems, each a bound of the objective that touches it at the current point. So the
objective falls with every step, and `objective_trace_` keeps its values. On the left the truncated machine: a handful of steps, each
solved to a duality gap. On the right the capped machine with its exact rounds and with the paper's alternating algorithm, one linear
system a pass, on the same problem: it comes to rest at a higher minimum.
"""

import matplotlib.pyplot as plt
import numpy as np

from outlast import CappedSVC, TruncatedSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 10))
y = X[:, 0] + X[:, 1] > 0
wrong = rng.random(400) < 0.2
y = np.where(wrong, ~y, y)
X[wrong] *= 2.5

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for s in (-2, -1, 0):
    trace = TruncatedSVC(C=1, kernel="linear", truncation=s).fit(X, y).objective_trace_
    left.plot(trace, marker="o", label=f"s = {s}")
left.set(title="truncated hinge", xlabel="step", ylabel="objective")
left.legend()

exact = CappedSVC(C=1, p=2.0, cap=2.0).fit(X, y)
passes = CappedSVC(C=1, p=2.0, cap=2.0, solver="alternating", max_iter=5000).fit(X, y)
best = min(exact.objective_, passes.objective_)
for name, model in (("exact rounds", exact), ("alternating (the paper's)", passes)):
    above = model.objective_trace_ / best - 1
    right.plot(
        np.arange(len(above)) + 1, np.maximum(above, 1e-9), marker=".", label=name
    )
right.set(
    title="capped, p = 2",
    xlabel="round or pass",
    ylabel="relative height above the best",
    xscale="log",
    yscale="log",
)
right.legend()
plt.show()
