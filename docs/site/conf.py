"""Makes a site of the documentation, with Sphinx: `make docs`.

The source directory is the root of the repository, so that links lead to the same files as where
its Markdown is read. A link to a file that is not a page becomes a download.
"""

from typing import Any

project = "Moorage"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/**/*.md", "deploy/**/*.md"]
exclude_patterns = [".*", "bench", "build", "contrib", "demo", "dist", "scripts", "src", "tests"]
nitpicky = True
myst_heading_anchors = 6

html_theme = "furo"
html_title = "Moorage"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
templates_path = ["templates"]
html_additional_pages = {"index": "index.html"}
highlight_language = "none"
# Examples are what people type and see, with dots for what is left out: not always valid JSON.
suppress_warnings = ["misc.highlighting_failure"]

CONTENTS = {
    "Tutorials": ["docs/tutorials/where-does-it-fit", "docs/tutorials/*"],
    "How to": ["docs/howto/*"],
    "Concepts": ["docs/concepts/*", "docs/glossary"],
    "Reference": ["docs/reference/*", "deploy/helm/moorage/README"],
    "Project": ["CONTRIBUTING", "ARCHITECTURE", "CHANGELOG", "SECURITY"],
    "Figures": ["docs/performance", "docs/scale"],
    "Decisions": ["docs/decisions/*"],
}
"""The navigation. The build fails if a page is missing here."""


def _read(app: Any, page: str, source: list[str]) -> None:
    """Add the navigation to the first page; the first decision stands for their folder."""
    if page == root_doc:
        first = "(docs/decisions/0001-the-batch-is-the-transaction.md)"
        source[0] = source[0].replace("(docs/decisions/)", first)
        for caption, pages in CONTENTS.items():
            listed = "\n".join(pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n{listed}\n```\n"


def setup(app: Any) -> None:
    """Let Sphinx call `_read` with the text of each page."""
    app.connect("source-read", _read)
