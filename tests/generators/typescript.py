"""Generates types for TypeScript, compiles a program that uses them, and runs it."""

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = "use_types.ts"
SECONDS = 300
QUIET = ("✨", "🚀")
"""How the lines begin that the generator prints if it has nothing to report."""
CHECKS = ("--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess")
TARGET = ("--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom")


class TypeScript:
    """A folder with the types of a document, and the program that uses them."""

    def __init__(self, packages: Path, folder: Path) -> None:
        """`packages` is a folder with the installed packages of package.json."""
        self._programs = packages.absolute() / "node_modules/.bin"
        self._folder = folder / "typescript"
        self._folder.mkdir()
        (self._folder / "package.json").write_text('{"type": "module"}')

    def generate(self, document: Path) -> str | None:
        """Generate the types; return what the generator reports: errors, and warnings."""
        # By default, it makes fields with a default required, in requests as well.
        words = (str(document), "--default-non-nullable=false", "-o", "types_generated.ts")
        code, output = self._run("openapi-typescript", *words)
        lines = [line for line in output.splitlines() if line.strip()]
        return output if code or not all(line.startswith(QUIET) for line in lines) else None

    def compile(self, replace: tuple[str, str] = ("", "")) -> str | None:
        """Compile the program, with a replacement; return the errors."""
        text = (HERE / PROGRAM).read_text()
        assert replace[0] in text
        (self._folder / PROGRAM).write_text(text.replace(*replace, 1) if replace[0] else text)
        code, output = self._run("tsc", *CHECKS, *TARGET, PROGRAM)
        return output if code else None

    def use(self, url: str, token: str) -> str:
        """Run the program; return what it prints. Raises CalledProcessError."""
        command = [shutil.which("node") or "node", PROGRAM.replace(".ts", ".js"), url, token]
        done = subprocess.run(
            command,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return done.stdout.strip()

    def _run(self, program: str, *words: str) -> tuple[int, str]:
        done = subprocess.run(
            [str(self._programs / program), *words],
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "NO_COLOR": "1", "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stdout
