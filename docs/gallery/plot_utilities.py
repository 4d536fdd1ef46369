"""
Utilities move the boundaries
=============================

Three overlapping classes. A utility matrix says what each decision is worth for each true class. On the left every right
decision is worth 1 and every mistake nothing. On the right a row of class *a* that is taken for *b* is still worth 0.7: where *a* and
*b* overlap, deciding for *b* becomes the better bet, and *b* takes over ground from *a*.
"""

import matplotlib.pyplot as plt
import numpy as np

from outlast import TruncatedSVC

rng = np.random.default_rng(1)
centres = np.array([[-1.15, 0.0], [1.15, 0.0], [0.0, 2.1]])


def sample(n):
    y = rng.integers(0, 3, n)
    return centres[y] + 0.85 * rng.normal(size=(n, 2)), y


X, y = sample(600)
X_test, y_test = sample(20000)

# %%
# Both models are judged by the same utilities, those on the right.

utility = np.array(
    [[1, 0.7, 0], [0, 1, 0], [0, 0, 1]]
)  # row = true class, column = decision
settings = {"every mistake alike": None, "a taken for b is worth 0.7": utility}

colors = ["tab:blue", "tab:orange", "tab:green"]
east, north = np.meshgrid(np.linspace(-4, 4, 300), np.linspace(-2.8, 4.8, 300))
places = np.column_stack([east.ravel(), north.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for ax, (name, matrix) in zip(axes, settings.items()):
    model = TruncatedSVC(C=0.01, kernel="linear", utility=matrix).fit(X, y)
    average = utility[y_test, model.predict(X_test)].mean()
    decided = model.predict(places).reshape(east.shape)
    ax.contourf(
        east, north, decided, levels=[-0.5, 0.5, 1.5, 2.5], colors=colors, alpha=0.25
    )
    for code, color in enumerate(colors):
        ax.scatter(*X[y == code].T, s=8, color=color, label="abc"[code])
    ax.set(xlim=(-4, 4), ylim=(-2.8, 4.8))
    ax.set_title(f"{name}\naverage utility (with the 0.7) {average:.3f}", fontsize=10)
axes[0].legend(title="true class", loc="lower left")
plt.show()
