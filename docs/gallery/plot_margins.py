"""
The margins of the training rows
================================

`margins_` holds the functional margin of every training row, and `outliers_` says which lie below the truncation. The histogram
shows how clear-cut that is: good rows pile up at 1 and beyond, rows with a wrong label stretch to the left, and the rows given up
are those to the left of the line. Some flipped rows lie close to the boundary: no method can tell these from honest rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from outlast import TruncatedSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 2))
clean = X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4
flipped = rng.random(600) < 0.12
y = np.where(flipped, ~clean, clean)

model = TruncatedSVC(C=10, gamma=0.5).fit(X, y)
truncation = -1  # what truncation="auto" means for two classes

figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
bins = np.linspace(model.margins_.min() - 0.2, model.margins_.max() + 0.2, 50)
ax.hist(
    [model.margins_[~flipped], model.margins_[flipped]],
    bins=bins,
    stacked=True,
    label=["label right", "label flipped"],
    color=["tab:blue", "tab:red"],
)
ax.axvline(truncation, color="black", linestyle="--", linewidth=1)
ax.annotate(
    "given up  ",
    (truncation, 0.95),
    xycoords=("data", "axes fraction"),
    ha="right",
    fontsize=9,
)
ax.set(xlabel="functional margin y f(x)", ylabel="rows")
ax.legend(loc="upper left", bbox_to_anchor=(0, 0.9))
plt.show()

# %%
# How many of the rows given up were indeed flipped, and how many of the flipped rows were given up:

given_up = model.outliers_
print(
    f"{flipped[given_up].mean():.0%} of {given_up.sum()} given up were flipped; "
    f"{given_up[flipped].mean():.0%} of {flipped.sum()} flipped were given up"
)
