"""What docker, helm and gh do when they publish: stand_in.py PROGRAM WORD...

$FOLDER is the registry. Each command is noted in $FOLDER/words, what it reads in $FOLDER/read. An
image is a file with the commit that it was built from, below `built` and, once it is pushed, below
`pushed`.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

FOLDER = Path(os.environ["FOLDER"])
CHART = "chart.tgz"


def image(state: str, tag: str) -> Path:
    """Return the file of an image."""
    path = FOLDER / state / tag.replace("/", "_")
    path.parent.mkdir(exist_ok=True)
    return path


def option(words: list[str], name: str) -> str:
    """Return the value of an option."""
    return words[words.index(name) + 1]


def docker(words: list[str]) -> None:
    """Build, push, pull or inspect an image."""
    match words:
        case ["build", *options, context]:
            commit = next(word for word in options if word.startswith("REVISION="))[9:]
            assert option(options, "--file") == f"{context}/Containerfile"
            files = sorted(str(one.relative_to(context)) for one in Path(context).rglob("*"))
            (FOLDER / "context").write_text("\n".join(files))
            image("built", option(options, "--tag")).write_text(commit)
        case ["push", tag]:
            shutil.copy(image("built", tag), image("pushed", tag))
        case ["pull", "--quiet", tag]:
            if not image("pushed", tag).exists():
                sys.exit(os.environ.get("ABSENT", "Error response from daemon: manifest unknown"))
            shutil.copy(image("pushed", tag), image("built", tag))
        case ["inspect", "--format", form, tag] if "Labels" in form:
            sys.stdout.write(image("built", tag).read_text())
        case ["inspect", "--format", _, tag]:
            digest = hashlib.sha256(tag.encode()).hexdigest()
            for name in ("other.example/moorage", tag.split(":")[0]):
                sys.stdout.write(f"{name}@sha256:{digest}\n")
        case ["login", *_]:
            with (FOLDER / "read").open("a") as read:
                read.write(sys.stdin.read())
        case _:
            sys.exit(f"docker: {words}")


def helm(words: list[str]) -> None:
    """Push or pull the chart."""
    match words:
        case ["push", file, _]:
            shutil.copy(file, FOLDER / CHART)
        case ["pull", _, "--version", version, "--destination", folder]:
            if not (FOLDER / CHART).exists():
                sys.exit(os.environ.get("ABSENT", "Error: manifest: not found"))
            shutil.copy(FOLDER / CHART, Path(folder, f"moorage-{version}.tgz"))
        case ["registry", "login", *_]:
            pass
        case _:
            sys.exit(f"helm: {words}")


def gh(words: list[str]) -> None:
    """Keep the notes of a release."""
    shutil.copy(option(words, "--notes-file"), FOLDER / "notes")


if __name__ == "__main__":
    with (FOLDER / "words").open("a") as noted:
        noted.write(f"{' '.join(sys.argv[1:])}\n")
    {"docker": docker, "helm": helm, "gh": gh}[sys.argv[1]](sys.argv[2:])
