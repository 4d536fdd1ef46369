"""
Coefficients along C, for two powers
====================================

Three of twenty columns count. The penalty :math:`\\sum |w_j|^q` with q = 1 brings columns in one by one as C grows and shrinks
those it has; q = 0.5 holds out longer, then takes a column nearly whole: the true columns (in color) reach their size while
most of the others are still exactly 0.
"""

import matplotlib.pyplot as plt
import numpy as np

from outlast import LqSVCCV, plot

rng = np.random.default_rng(0)
X = rng.standard_normal((150, 20))
y = X[:, 0] - X[:, 1] + 0.6 * X[:, 2] + 0.6 * rng.standard_normal(150) > 0

search = LqSVCCV(Cs=15, qs=[0.5, 1.0], random_state=0).fit(X, y)

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True, layout="constrained")
for ax, q in zip(axes, (1.0, 0.5)):
    plot.coefficient_path(search, q=q, ax=ax)
    path = search.coefs_path_[list(search.qs_).index(q)].reshape(len(search.Cs_), -1)
    shown = np.flatnonzero(np.any(path != 0, axis=0))
    for line, column in zip(ax.get_lines(), shown):
        line.set(
            color=f"C{column}" if column < 3 else "silver",
            zorder=3 if column < 3 else 1,
        )
axes[1].set_ylabel("")
plt.show()

# %%
# The dashed line is the C that cross-validation chose, together with this power and these columns:

print(
    "q =",
    search.q_,
    " C =",
    round(search.C_, 3),
    " columns:",
    search.selected_features_,
)
