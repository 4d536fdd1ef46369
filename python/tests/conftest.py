"""Settings that must be in place before scipy and matplotlib are imported."""

import os

# scikit-learn's own checks leave out their array checks without it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# examples draw, and nobody looks
os.environ.setdefault("MPLBACKEND", "Agg")
