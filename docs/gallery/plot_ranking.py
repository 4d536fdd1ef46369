"""
Ranking suspicious labels
=========================

`outlier_scores_` orders the training rows by how badly their label fits: larger is more suspect. Someone who checks labels by hand
reads the list from the top. The picture shows what share of the rows read so far did have a wrong label, and which share of all
wrong labels has been found. The plain machine has bent towards the wrong rows, so its order is a little worse.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from outlast import TruncatedSVC

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
rng = np.random.default_rng(0)
flipped = np.zeros(len(y), dtype=bool)
flipped[rng.choice(len(y), 114, replace=False)] = True  # a fifth
noisy = np.where(flipped, 1 - y, y)

# %%
# The breast cancer data, a fifth of the labels flipped, linear machines. (With an rbf kernel and a large C the three differ less.)

rank = np.arange(1, len(y) + 1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for name, model in {
    "plain": TruncatedSVC(C=0.1, kernel="linear", truncation=None),
    "truncated at −1": TruncatedSVC(C=0.1, kernel="linear"),
    "truncated at 0": TruncatedSVC(C=0.1, kernel="linear", truncation=0),
}.items():
    order = np.argsort(-model.fit(X, noisy).outlier_scores_)
    hits = np.cumsum(flipped[order])
    left.plot(rank[:200], hits[:200] / rank[:200], label=name)
    right.plot(rank[:200], hits[:200] / flipped.sum(), label=name)
for ax in (left, right):
    ax.axvline(flipped.sum(), color="grey", linestyle=":", linewidth=1)
    ax.set(xlabel="rows read, most suspect first", ylim=(0, 1.03))
left.set_ylabel("share of them with a wrong label")
right.set_ylabel("share of wrong labels found")
right.plot(
    rank[:200],
    np.minimum(rank[:200] / flipped.sum(), 1),
    "k--",
    linewidth=1,
    label="a perfect order",
)
right.legend(loc="lower right")
plt.show()
