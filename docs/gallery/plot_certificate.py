"""
How far from the best, over C
=============================

The hinge truncated at 0 makes a problem with many local minima. `certify` gives a lower bound of the global minimum, whatever
the solver did: the true minimum lies between the two lines. For small C they meet, and the model is proved to be the best
there is. For large C the bound falls away from the objective and says little, though the model may still be the best.
"""

import matplotlib.pyplot as plt
import numpy as np

from outlast import TruncatedSVC, certify

rng = np.random.default_rng(0)
y = np.repeat([-1, 1], 40)
X = rng.normal(size=(80, 2)) + 1.2 * y[:, None]
X[:5] *= -6  # five rows far out on the wrong side

Cs = np.geomspace(1e-3, 10, 17)
found = []
for C in Cs:
    model = TruncatedSVC(C, truncation=0, kernel="linear", fit_intercept=False).fit(
        X, y
    )
    found.append(certify(model, X, y))

# %%
# Objectives are divided by C, so that they can be read as a number of rows: the least that the rows can cost together.

upper = np.array([one.objective for one in found]) / Cs
lower = np.array([one.lower_bound for one in found]) / Cs
proved = np.array([one.proved for one in found])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(Cs, upper, marker="o", label="objective of the model / C")
left.plot(Cs, lower, marker="o", label="certified lower bound / C")
left.fill_between(Cs, lower, upper, alpha=0.15, label="the global minimum is in here")
left.set(xscale="log", xlabel="C", ylabel="rows", ylim=(0, None))
left.legend()
gap = np.array([one.gap for one in found])
right.plot(Cs, gap, color="grey", linewidth=1)
right.scatter(
    Cs[proved],
    gap[proved],
    color="tab:green",
    label="proved to be the global minimum",
    zorder=3,
)
right.scatter(Cs[~proved], gap[~proved], color="tab:red", label="not proved", zorder=3)
right.set(xscale="log", xlabel="C", ylabel="certificate's gap")
right.legend()
plt.show()
