"""The documentation: `make docs` builds it, without network; the pages need none either."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

import badacost

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "badacost"
author = "The badacost developers"
copyright = author
release = version = badacost.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "ready_explorer",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.md5", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
root_doc = "index"
default_role = "py:obj"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"badacost {release}"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "badacost"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": [], "install": [], "quickstart": [], "coming_from": []}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Examples write their pictures to the current folder, which is that of the script: run copies.
EXAMPLES = HERE / "_build" / "examples"
shutil.rmtree(EXAMPLES, ignore_errors=True)
shutil.copytree(HERE.parent / "examples", EXAMPLES, ignore=shutil.ignore_patterns("__pycache__"))

sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\d{4}_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}


def _skip(
    app: Sphinx, what: str, name: str, member: Any, skipped: bool, options: Any
) -> bool | None:
    """Leave out what scikit-learn adds to every estimator: it is documented there."""
    of_scikit_learn = getattr(inspect.unwrap(member), "__module__", "") if callable(member) else ""
    if name.startswith("set_") and name.endswith("_request"):
        return True
    return True if str(of_scikit_learn).startswith("sklearn.") else None


def _escape(app: Sphinx, what: str, name: str, member: Any, options: Any, lines: list[str]) -> None:
    """Keep types such as "ndarray of shape (n_features_in_,)" from being read as links."""
    for number, line in enumerate(lines):
        if re.match(r"\w[\w, ]* : ", line):
            lines[number] = re.sub(r"(?<=\w)_(?=[,)])", r"\\_", line)


def setup(app: Sphinx) -> None:
    """Connect the hooks, the second one before that of numpydoc."""
    app.add_lexer("mermaid", TextLexer)  # drawn by hosts of repositories, text here
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _escape, priority=100)
