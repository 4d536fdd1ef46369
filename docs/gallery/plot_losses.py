"""
The losses
==========

What a row costs, over its functional margin :math:`u = y f(x)`: positive on the right side of the boundary, 1 or more where the
row is classified with room to spare. A loss that goes on rising to the left lets one row pull as hard as it likes. All the
robust losses here are bounded.
"""

import matplotlib.pyplot as plt
import numpy as np

# %%
# - **Truncated** (`TruncatedSVC`): the loss stays at its value at the truncation :math:`s`. For the hinge this is
#   :math:`\min([1-u]_+, 1-s)`.
# - **Capped** (`CappedSVC`): a power :math:`r^p` of the residual :math:`r = [1-u]_+` up to a cap, or the smooth
#   loss of Geman and McClure, which lets go of rows little by little.
# - **Ablation** (`AblationSVC`): every row has a switch :math:`\eta` between 0 and 1. For REH its best value is 1 for
#   :math:`u > 0` and 0 for :math:`u < 0`, which makes the hinge truncated at 0; ROD has a budget of rows to switch off, and the
#   rows that are kept pay the plain hinge.

u = np.linspace(-3.5, 2.5, 601)
hinge = np.maximum(0, 1 - u)
logistic = np.log1p(np.exp(-u))

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
truncated, capped, ablation = axes

truncated.plot(u, hinge, "k:", label="hinge")
truncated.plot(u, np.minimum(hinge, 2), label="hinge, s = −1")
truncated.plot(u, np.minimum(hinge, 1), label="hinge, s = 0")
truncated.plot(u, np.minimum(logistic, np.log1p(np.exp(1.0))), label="logistic, s = −1")

for p in (0.5, 1.0, 2.0):
    capped.plot(u, np.minimum(hinge**p, 2.0), label=f"p = {p:g}, cap = 2")
capped.plot(u, 2 * hinge**2 / (2 + hinge**2), "--", label="Geman–McClure, cap = 2")

ablation.plot(u, hinge, "k:", label="η = 1: hinge")
ablation.plot(
    u, np.ones_like(u), color="grey", linestyle="--", label="REH, η = 0: costs 1"
)
ablation.plot(u, np.minimum(hinge, 1), label="REH: the lesser of the two")

for ax, title in zip(axes, ("truncated", "capped", "ablation")):
    ax.set(title=title, xlabel="functional margin u", ylim=(-0.1, 4.6))
    ax.axvline(0, color="grey", linewidth=0.5)
    ax.legend(fontsize=8)
truncated.set_ylabel("loss")
plt.show()
