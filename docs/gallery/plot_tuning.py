"""
Choosing C and q by cross-validation
====================================

`LqSVCCV` fits the whole grid of C and q on every fold and takes the pair with the least error, the sparsest of equals. The picture
shows the error and how many columns each fit keeps; the choice is ringed. Few columns count here, and the powers that set
coefficients to 0 (q ≤ 1) do better than q = 2, which keeps all of them; with many small effects it would be the other way round.
"""

import matplotlib.pyplot as plt
import numpy as np

from outlast import LqSVCCV, plot

rng = np.random.default_rng(1)
X = rng.standard_normal((200, 40))
y = X[:, 0] - X[:, 1] + X[:, 2] + rng.standard_normal(200) > 0

search = LqSVCCV(Cs=8, qs=[0.5, 1.0, 2.0], random_state=0).fit(X, y)
error, size = plot.tuning(search)
size.axhline(3, color="grey", linestyle=":", linewidth=1)
size.annotate(
    "3 columns count",
    (0.97, 3.4),
    xycoords=("axes fraction", "data"),
    ha="right",
    fontsize=9,
)
plt.show()

# %%
# How stable is the selection? The share of the folds in which each column was selected at the chosen point:

figure, ax = plt.subplots(figsize=(9, 2.4), layout="constrained")
ax.bar(
    np.arange(40),
    search.selection_frequency_,
    color=np.where(np.arange(40) < 3, "tab:blue", "silver"),
)
ax.set(
    xlabel="column",
    ylabel="share of folds",
    title=f"selected at C = {search.C_:.3g}, q = {search.q_:g}",
)
plt.show()
