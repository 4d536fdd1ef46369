"""`LqSVCCV`: the L_q support vector machine that chooses C and q by the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight, validate_data

from . import _core, _input
from ._estimator import _print_progress
from ._lq import LqSVC

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["LqSVCCV"]
