"""`make docs` builds the whole site strictly: it can be searched, and asks no other host.

SPHINX is the program of the site's own environment; BUILT names the folder of the site.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPHINX = os.environ["SPHINX"]
BUILT = Path(os.environ["BUILT"])

LOADED = re.compile(r"""<(?:script|link|img)\b[^>]*?\b(?:src|href)="((?:https?:)?//[^"]+)""")
STYLED = re.compile(r"""(?:@import|url\()\s*["']?((?:https?:)?//[^"')]+)""")


FAULTS = {
    "[a](#none)": "'none'",
    "[a](reference/cli.md#none)": "local id not found in doc 'docs/reference/cli': 'none'",
    "[a](reference/none.md)": "reference/none.md",
    "[a](../contrib/none.py)": "../contrib/none.py",
    "![a](images/none.png)": "images/none.png",
}
"""Links that lead nowhere, and what the build says of each."""


def test_links_that_lead_nowhere_fail_the_build(tmp_path: Path) -> None:
    """A broken link, anchor or image fails the build: all are planted in a copy of the documents.

    The lines of the copy's other pages raise no complaint.
    """
    for page in ROOT.glob("*.md"):
        shutil.copy(page, tmp_path)
    for name in ("docs", "deploy"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("LICENSE", "contrib"):
        (tmp_path / name).symlink_to(ROOT / name)
    with (tmp_path / "docs/glossary.md").open("a") as glossary:
        glossary.write("\n".join(["", *FAULTS, ""]))
    options = ["-b", "dummy", "-q", "-W", "--keep-going", "-c", str(ROOT / "docs/site")]
    command = [SPHINX, *options, str(tmp_path), str(tmp_path / "built")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    complaints = [line for line in ended.stderr.splitlines() if "WARNING" in line]
    assert [line for line in complaints if "docs/glossary.md" not in line] == []
    assert [said for said in FAULTS.values() if said not in ended.stderr] == []
    assert len(complaints) == len(FAULTS)


def test_the_site_can_be_searched() -> None:
    """The index of the search names every page, and words of their text."""
    index = (BUILT / "searchindex.js").read_text()
    pages = [*ROOT.glob("*.md")]
    pages += [path for folder in ("docs", "deploy") for path in (ROOT / folder).rglob("*.md")]
    names = [str(page.relative_to(ROOT).with_suffix("")) for page in pages]
    assert [name for name in names if f'"{name}"' not in index] == []
    assert '"fenc":' in index


def test_pages_load_nothing_from_other_hosts() -> None:
    """Scripts, styles, images and fonts are part of the site, so it works without a network."""
    files = [*BUILT.rglob("*.html"), *BUILT.rglob("*.css")]
    assert len(files) > 50
    found = {
        str(file): loaded
        for file in files
        if (loaded := [*LOADED.findall(file.read_text()), *STYLED.findall(file.read_text())])
    }
    assert found == {}


def test_what_other_hosts_serve_is_found() -> None:
    """A control: scripts, styles and fonts of other hosts are found; links are not."""
    page = '<script async src="//a.example/x.js"></script> <a href="https://b.example">'
    assert LOADED.findall(page) == ["//a.example/x.js"]
    style = "@import 'https://c.example/x.css'; @font-face { src: url(//d.example/x.woff) }"
    assert STYLED.findall(style) == ["https://c.example/x.css", "//d.example/x.woff"]
