"""Settings that must be in place before scipy and matplotlib are imported, and before a test presses Ctrl-C."""

import os
import signal

# scikit-learn's own checks leave out their array checks without it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# examples draw, and nobody looks
os.environ.setdefault("MPLBACKEND", "Agg")

# a shell's background jobs ignore it, and so would the fits that tests interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)
