"""Takes the pictures of the README and the how-tos: `make screenshots`.

They show the example of `make demo` as soon as it is ready: the jobs are the same each time, ages
and the newest figures differ a little.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 1200, 760
BYTES_MAX = 200_000
ADDRESS = re.compile(r"  address +(http://\S+)/ui")
ADMIN = re.compile(r"  or with +(\S+) ")
"""The lines of the example that name its address and the administrator's token."""


class Picture(NamedTuple):
    """One picture: its name, the address, and the theme."""

    name: str
    path: str
    theme: str = "light"
    height: int = HEIGHT


PICTURES = (
    Picture("overview", "/ui"),
    Picture("pool", "/ui/pools/install/azure?since=3600", height=1000),
    Picture("fleet", "/ui/fleet?group=rack", "dark", 1100),
    Picture("fit", "/ui/fit?resources=VCPU:96,CUSTOM_GPU_A100:5&required=CUSTOM_WATER_COOLED"),
)


def main() -> int:
    """Take all pictures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="of the environment with the demo")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs/images")
    words = parser.parse_args()
    words.folder.mkdir(parents=True, exist_ok=True)
    command = [words.python, "-m", "demo", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as demo:
        try:
            url, token = _started(demo)
            _take(url, token, words.folder)
        finally:
            demo.send_signal(signal.SIGINT)
            demo.communicate()
    return 0


def _started(demo: subprocess.Popen[str]) -> tuple[str, str]:
    url = ""
    assert demo.stdout is not None
    for line in demo.stdout:
        if found := ADDRESS.match(line):
            url = found[1]
        if found := ADMIN.match(line):
            return url, found[1]
    sys.exit("screenshots: the example does not start")


def _take(url: str, token: str, folder: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"]
        )
        for picture in PICTURES:
            page = browser.new_page(
                viewport={"width": WIDTH, "height": picture.height},
                color_scheme="dark" if picture.theme == "dark" else "light",
            )
            _sign_in(page, url, token)
            page.goto(url + picture.path)
            page.wait_for_function(
                "() => document.getElementById('connection').textContent.startsWith('Live')"
            )
            page.wait_for_timeout(1500)  # the map is drawn after the page
            path = folder / f"{picture.name}.png"
            page.screenshot(path=path)
            size = path.stat().st_size
            print(f"screenshots: {path} ({size} bytes)", flush=True)
            assert size <= BYTES_MAX, f"{path} is too large for a repository"
            page.close()
        browser.close()


def _sign_in(page: Page, url: str, token: str) -> None:
    page.goto(f"{url}/ui/sign-in")
    page.fill("#token", token)
    page.click("button")
    page.wait_for_url(f"{url}/ui")


if __name__ == "__main__":
    sys.exit(main())
