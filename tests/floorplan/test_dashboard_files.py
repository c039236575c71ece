"""The files of the dashboard: small, unmodified if they are vendored, and without inline code."""

import hashlib
import re
from pathlib import Path

import pytest

from moorage.faces.dashboard.rendering import TEMPLATES
from moorage.faces.dashboard.static_files import FOLDER, assets

SCRIPT_BYTES_MAX = 12_000
"""All scripts together, compressed. Lower it when they shrink; never raise it above 30 KB.

The 270 bytes of `sign_in.js` are loaded by the page that signs in, and by no other.
"""

STYLE_BYTES_MAX = 4_500
INLINE = re.compile(r"<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:|<script(?![^>]*\ssrc=)")
ELSEWHERE = re.compile(r"""(?:src|href|action)="(?:https?:)?//""")
UNSAFE = re.compile(
    r"\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
)


def size(suffix: str) -> int:
    """Return the compressed size of all files of a kind."""
    return sum(len(one.compressed) for name, one in assets().items() if name.endswith(suffix))


def test_scripts_and_styles_are_small() -> None:
    """A ratchet: whatever makes them larger must be worth it."""
    assert size(".js") <= SCRIPT_BYTES_MAX
    assert size(".css") <= STYLE_BYTES_MAX


def test_vendored_files_are_unmodified() -> None:
    """Each has its checksum, and its licence beside it."""
    vendor = FOLDER / "vendor"
    lines = (vendor / "SHA256SUMS").read_text().splitlines()
    sums = {line.partition("  ")[2]: line.partition("  ")[0] for line in lines}
    scripts = {path.name: path for path in vendor.glob("*.js")}
    assert sums.keys() == scripts.keys()
    for name, path in scripts.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sums[name]
        assert path.with_suffix(".LICENSE").is_file()


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_templates_have_no_inline_code(path: Path) -> None:
    """The policy would block it."""
    text = path.read_text()
    assert INLINE.findall(text) == []
    assert ELSEWHERE.findall(text) == []
    assert "|safe" not in text.replace(" ", "")


def test_own_scripts_use_no_sink() -> None:
    """Only the policy of live.js makes HTML from text."""
    for name, asset in assets().items():
        if name.endswith(".js") and "/" not in name:
            assert UNSAFE.findall(asset.plain.decode()) == [], name
            assert asset.plain.decode().count("parseFromString") == (name == "live.js")


@pytest.mark.parametrize(
    "text", ['<p style="x">', "<a onclick = 'x'>", "<script>x", '<a href="//x">', "a.innerHTML"]
)
def test_inline_code_is_found(text: str) -> None:
    """The control."""
    assert INLINE.search(text) or ELSEWHERE.search(text) or UNSAFE.search(text)
