"""Support vector machines that outlast bad labels and outliers.

Every estimator minimises ``penalty(f) + C * sum_i loss_i(f)`` with a loss that stops growing, so that no single row can
cost more than a fixed amount: rows with a wrong label or absurd features are given up instead of obeyed.

>>> from outlast import TruncatedSVC
>>> model = TruncatedSVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
>>> model.predict([[-1.0], [4.0]])
array(['no', 'yes'], dtype='<U3')
"""

from importlib.metadata import version as _version

from . import plot as plot
from ._ablation import AblationSVC
from ._ablation_cv import AblationSVCCV
from ._audit import Audit, audit
from ._baselines import CentroidSVC, LeaveOneOutSVC
from ._capped import CappedSVC
from ._capped_cv import CappedSVCCV
from ._certify import Certificate, certify
from ._files import load
from ._lq import LqSVC
from ._lq_search import LqSVCCV
from ._truncated import TruncatedSVC
from ._truncated_cv import TruncatedSVCCV
from ._widths import gamma_quartiles

__all__ = [
    "AblationSVC",
    "AblationSVCCV",
    "Audit",
    "CappedSVC",
    "CappedSVCCV",
    "CentroidSVC",
    "Certificate",
    "LeaveOneOutSVC",
    "LqSVC",
    "LqSVCCV",
    "TruncatedSVC",
    "TruncatedSVCCV",
    "audit",
    "certify",
    "gamma_quartiles",
    "load",
]
__version__ = _version("outlast")
