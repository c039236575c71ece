"""Without the extra `placement` a command says what to install."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[0]:
            raise ModuleNotFoundError(f"No module named {name!r}")
from moorage.__main__ import main
sys.argv = sys.argv[1:]
sys.meta_path.insert(0, Missing())
main()
"""
COMMAND = ("import", "placement", "--server", "http://127.0.0.1:9", "--token", "t", "--database")


@pytest.mark.parametrize("module", ["sqlalchemy", "pymysql"])
def test_a_missing_package_is_named(module: str) -> None:
    """Before anything is asked or written."""
    address = "mysql://u:SECRET@h/placement"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, module, *COMMAND, address],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"moorage: this command needs the extra placement (No module named '{module}'):"
        " pip install 'moorage[placement]'\n"
    )
