"""The documentation site: `make docs` builds it into site/, with warnings as errors and without the network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cdsampler

project = "cdsampler"
author = "The cdsampler developers"
copyright = "the cdsampler developers, MIT licence"
version = release = cdsampler.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "tools.site",
]
exclude_patterns = ["tools"]

myst_enable_extensions = ["dollarmath", "attrs_inline"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

# Docstrings are numpydoc sections with Markdown's inline code.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "cdsampler"
html_static_path = ["static"]
html_css_files = ["extra.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_exclude = ".linenos, .gp, .go"
