"""What a backup leaves behind whose process was killed."""

import subprocess
import sys
from pathlib import Path


def left_by_a_killed_process(target: Path) -> None:
    """Begin a backup in a process that ends without closing it."""
    begin = "import sys; from moorage.store.unfinished import Unfinished; Unfinished(sys.argv[1])"
    subprocess.run([sys.executable, "-c", begin, str(target)], check=True)
