"""
What the truncation does
========================

The truncation :math:`s` says how far on the wrong side a row may lie before it is given up. Far to the left hardly anything is
given up, and the machine is nearly the plain one; at 0 every misclassified row is. The columns here have heavy tails, so that some
of the flipped rows lie far out.
"""

import matplotlib.pyplot as plt
import numpy as np

from outlast import TruncatedSVC

rng = np.random.default_rng(0)
weights = np.array([1.0, 1.0, -0.5, 0.0, 0.0])
test = rng.standard_normal((4000, 5))


def sample(share):
    X = rng.standard_t(2, size=(200, 5))
    y = X @ weights > 0
    return X, np.where(rng.random(200) < share, ~y, y)


# %%
# A linear machine with C = 1; the mean over eight data sets for each share of flipped labels.

truncations = [-8, -4, -2, -1, -0.5, 0]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for share in (0.05, 0.15, 0.25):
    error, dropped = np.zeros(len(truncations)), np.zeros(len(truncations))
    for _ in range(8):
        X, y = sample(share)
        for at, s in enumerate(truncations):
            model = TruncatedSVC(C=1, kernel="linear", truncation=s).fit(X, y)
            error[at] += np.mean(model.predict(test) != (test @ weights > 0)) / 8
            dropped[at] += model.outliers_.mean() / 8
    line = left.plot(truncations, error, marker="o", label=f"{share:.0%} flipped")[0]
    right.plot(truncations, dropped, marker="o", color=line.get_color())
    right.axhline(share, color=line.get_color(), linestyle=":", linewidth=1)

left.set(xlabel="truncation s", ylabel="error on clean rows", ylim=(0, None))
right.set(xlabel="truncation s", ylabel="share of rows given up")
right.annotate(
    "dotted: the share flipped", (0.03, 0.9), xycoords="axes fraction", fontsize=9
)
left.legend()
plt.show()
