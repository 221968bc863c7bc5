"""How the site is built: ``make docs`` (Sphinx; everything it serves is in the build)."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from notebooks import adapt  # noqa: E402
from pictures import HEAVY, Pages  # noqa: E402

import scgd  # noqa: E402

project = "scgd"
author = "The scgd developers"
copyright = author
version = release = scgd.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx-mathjax-offline",
    "reference",
]
exclude_patterns = ["_build", "tutorials", "sg_execution_times.rst", "*/sg_execution_times.rst"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"  # they stand in the signature once, and in words in the docstring
autodoc_member_order = "bysource"
suppress_warnings = ["config.cache"]  # the gallery's scraper is an object

html_theme = "pydata_sphinx_theme"
html_title = "scgd"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_sidebars = {"first-run": [], "choosing": []}  # pages without others below them
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "scgd", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "tutorials"],
    "gallery_dirs": ["gallery", "tutorial"],
    "filename_pattern": rf"^(?!.*({'|'.join(HEAVY)})\.py$).*\.py$",
    "ignore_pattern": r"__init__",
    "image_scrapers": (Pages(),),
    "reset_modules": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "capture_repr": (),
    "plot_gallery": "True",
    "within_subsection_order": "pictures.ByDoor",
    "copyfile_regex": r".*\.(svg|png)$",
}


def setup(app):
    """Have notebooks show their pictures, and tables that are wide take the keyboard's focus."""

    def focusable(app, page, template, context, doctree):
        box = '<div class="pst-scrollable-table-container"'
        context["body"] = context.get("body", "").replace(box, box + ' tabindex="0"')

    app.connect("builder-inited", adapt, priority=900)
    app.connect("html-page-context", focusable)
