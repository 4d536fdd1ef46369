"""How Sphinx builds the documentation: `make docs`, from these pages and the installed package, into docs-output/."""

import re
import warnings
from importlib.metadata import version as installed

from sphinx_gallery.sorting import ExplicitOrder

project = "Outlast"
author = "The Outlast developers"
copyright = "The Outlast developers; MIT or Apache-2.0"
version = release = installed("outlast")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without a server on the net
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery", "sg_execution_times.rst", "examples/sg_execution_times.rst"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# The gallery's settings hold functions, which Sphinx can't keep from one build to the next: it then reads all pages again.
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "smartquotes", "attrs_inline"]
myst_heading_anchors = 3
myst_url_schemes = ["http", "https", "mailto"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
add_module_names = False
default_role = "py:obj"

copybutton_exclude = ".linenos, .gp, .go"

templates_path = ["_templates"]
html_theme = "furo"
html_title = "Outlast"
html_static_path = ["_static"]
html_css_files = ["outlast.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f99", "color-brand-content": "#1f5f99"},
    "dark_css_variables": {"color-brand-primary": "#7db8ec", "color-brand-content": "#7db8ec"},
}


def without_hidden_lines(app, name, source):
    """Lines of Rust that begin with "# " are for the test, not for the reader, as everywhere in Rust's documentation."""
    shown = lambda block: re.sub(r"^# .*\n", "", block[0], flags=re.MULTILINE)
    source[0] = re.sub(r"^```rust\n.*?^```$", shown, source[0], flags=re.MULTILINE | re.DOTALL)


def setup(app):
    app.connect("source-read", without_hidden_lines)


def quiet(gallery_conf, name):
    """Examples draw to files: that `show` has no window to open is as it should be."""
    warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive", category=UserWarning)


sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": ExplicitOrder(
        [
            "plot_wrong_labels.py", "plot_losses.py", "plot_truncation.py", "plot_margins.py", "plot_ranking.py",
            "plot_utilities.py", "plot_ring.py", "plot_certificate.py", "plot_coefficient_path.py", "plot_tuning.py",
            "plot_cap.py", "plot_trace.py", "*",
        ]
    ),
    "reset_modules": ("matplotlib", quiet),
    "image_srcset": ["2x"],
    "min_reported_time": 1e9,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "line_numbers": False,
    "default_thumb_file": None,
}
