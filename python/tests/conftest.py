"""Settings that must be in place before scipy is imported."""

import os

# scikit-learn's own checks leave out their array checks without it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
