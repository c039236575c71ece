"""Imports without garbage collection leave the collector of other programs alone."""

import gc
import subprocess
import sys

from moorage import starting

WITHOUT_TLS = """
import sys
sys.modules["ssl"] = None
from moorage.client.transport import Transport, UnreachableError
try:
    Transport("http://127.0.0.1:9", None).request("GET", "/")
except UnreachableError as error:
    print(error)
"""


def test_an_end_without_a_beginning() -> None:
    """A program that has disabled its collector finds it disabled."""
    gc.disable()
    try:
        starting.end()
        assert not gc.isenabled()
        assert gc.get_freeze_count() == 0
    finally:
        gc.enable()


def test_a_python_without_tls() -> None:
    """What fails is reported as it is, although OpenSSL's errors are unknown there."""
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_TLS], capture_output=True, text=True, check=True
    )
    assert "refused" in found.stdout
