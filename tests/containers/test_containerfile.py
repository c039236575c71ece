"""The reader of the Containerfile refuses what it does not understand."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.containers.building import Builder, copied
from tests.containers.containerfile import Ignored, Unsupported, expanded, instructions, stages
from tests.containers.engine import parsed

ROOT = Path(__file__).resolve().parents[2]


def test_instructions() -> None:
    """Lines are joined, comments left out, also within an instruction."""
    text = "# a\nARG A=b\n\nFROM ${A} AS c\nRUN x \\\n # no\n && y\n"
    found = [(one.line, one.name, one.rest) for one in instructions(text)]
    assert found == [(2, "ARG", "A=b"), (4, "FROM", "${A} AS c"), (5, "RUN", "x && y")]
    arguments, (stage,) = stages(text)
    assert (arguments, stage.name, stage.source) == ({"A": "b"}, "c", "${A}")


@pytest.mark.parametrize(
    "text",
    [
        *("VOLUME /x", "FROM a AS b\nADD x y", "FROM a AS b\nONBUILD RUN x", "FROM a", "RUN x"),
        *("# syntax=x\nFROM a AS b", "FROM a AS b\nRUN <<END\nx\nEND", "FROM a AS b\nRUN x \\"),
    ],
)
def test_what_is_not_understood(text: str) -> None:
    """Other instructions, forms and directives are refused."""
    with pytest.raises(Unsupported):
        stages(text)


@pytest.mark.parametrize(
    "line",
    [
        *("RUN --mount=type=cache x", 'RUN ["x"]', "COPY --chown=1 LICENSE ./", "COPY none ./"),
        *("COPY .git/config ./", "CMD x", "USER moorage", "USER 1:2", "EXPOSE 1/tcp", "ENV A b"),
        *("ENV A=${B:-c}", "HEALTHCHECK NONE", "HEALTHCHECK --start-interval=1s CMD []"),
    ],
)
def test_what_is_not_executed(line: str, tmp_path: Path) -> None:
    """Options that would change the result, and files that the engine does not get."""
    (tmp_path / "Containerfile").write_text(f"ARG BASE=a\nFROM a AS b\n{line}\n")
    for name in (".containerignore", "LICENSE"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").touch()
    made = tmp_path / "made"
    made.mkdir()
    empty = tmp_path / "base.tar"
    empty.write_bytes(bytes(10_240))
    with pytest.raises(Unsupported):
        Builder(tmp_path, empty, made).build("b")


def test_the_health_check_is_as_patient_as_the_chart() -> None:
    """What stops or replaces an unhealthy container does so no earlier than Kubernetes."""
    (check,) = re.findall(
        r"^HEALTHCHECK (.*) CMD ", (ROOT / "Containerfile").read_text(), flags=re.M
    )
    options = dict(one.removeprefix("--").split("=") for one in check.split())
    chart = ROOT / "deploy/helm/moorage"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    assert options["start-period"] == f"{values['server']['startSeconds']}s"
    probe = (chart / "templates/_server.tpl").read_text().split("livenessProbe:")[1]
    wanted = {"interval": "periodSeconds", "timeout": "timeoutSeconds"}
    for option, field in {**wanted, "retries": "failureThreshold"}.items():
        (found,) = re.findall(rf"{field}: (\d+)", probe.split("readinessProbe:")[0])
        assert options[option].removesuffix("s") == found, option


def test_servers_start_again_by_themselves() -> None:
    """One that has ended on purpose, such as after a failed sync, does not stay down."""
    page = (ROOT / "docs/howto/container.md").read_text()
    started = re.findall(r"docker run --detach (.*)", page)
    assert len(started) > 1
    assert [one for one in started if not one.startswith("--restart unless-stopped ")] == []


def test_variables() -> None:
    """They are replaced; an unknown one is empty."""
    assert expanded("$A-${B}-$C", {"A": "a", "B": "b"}) == "a-b-"


def test_the_context(tmp_path: Path) -> None:
    """The engine gets what the images are built from, and no repository, token or compiled file."""
    copied(ROOT, tmp_path / "context", Ignored((ROOT / ".containerignore").read_text()))
    names = files_of(tmp_path / "context")
    text = (ROOT / "Containerfile").read_text()
    used = re.findall(r"^COPY (?!--from)(.*) \S+$", text, flags=re.M)
    assert {"src", *names} >= {*" ".join(used).split()}
    assert {name for name in names if not name.startswith("src/")} == TOP
    assert {name for name in names if name.startswith("src/")} == package()
    assert (ROOT / ".dockerignore").read_bytes() == (ROOT / ".containerignore").read_bytes()


PLANTED = (
    *("moorage.sqlite", "moorage.sqlite-wal", "moorage.sqlite.token", "moorage.db", ".env"),
    *("moorage.toml", "alice.token", "tls.key", "clouds.yaml", "core.123", ".git/config.py"),
    *("__pycache__/a.py", "moorage.egg-info/PKG-INFO", "notes.md", ".x.py.swp"),
)
"""What people may leave in a folder of the package."""


def test_what_lies_beside_the_package_stays(tmp_path: Path) -> None:
    """Databases, tokens, keys and settings do not get to the engine, in whichever folder."""
    project = tmp_path / "project"
    for name in package():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    for folder in ("src", "src/moorage", "src/moorage/store", "src/moorage/integrations/metal3"):
        for name in PLANTED:
            (project / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (project / folder / name).touch()
    ignored = Ignored((ROOT / ".containerignore").read_text())
    copied(project, tmp_path / "context", ignored)
    assert files_of(tmp_path / "context") == package()
    # An engine may also read folders that are left out.
    assert {name for name in files_of(project) if not ignored(name)} == package()
    without = Ignored("*\n!src\n")
    assert not any(without(name) for name in files_of(project)), "the control"


def package() -> set[str]:
    """Return the files of the package that are committed, or are about to be."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in done.stdout.splitlines() if (ROOT / name).exists()}


def files_of(folder: Path) -> set[str]:
    """Return the files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


TOP = {
    "contrib/openstack/moorage_placement_programs.py",
    "contrib/openstack/pyproject.toml",
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "scripts/container-health",
} | {f"requirements-{name}.lock" for name in ("image", "server")}


def test_patterns() -> None:
    """The last one that fits decides; one for a folder is for all that is in it."""
    ignored = Ignored("*\n!a\n!b/c\n**/d\n")
    got = {name: ignored(name) for name in ("a", "a/x", "b/c", "b/e", "a/d", "a/x/d/y", "e")}
    assert got == {
        **dict.fromkeys(("a", "a/x", "b/c"), False),
        **dict.fromkeys(("b/e", "a/d", "a/x/d/y", "e"), True),
    }
    assert ignored.lets_in_below("b") and not ignored.lets_in_below("e")


@pytest.mark.parametrize("words", ["run --privileged x", "run --det x", "pull x", "build ."])
def test_what_the_engine_refuses(words: str) -> None:
    """Options that the pages do not use."""
    with pytest.raises(SystemExit):
        parsed(words.split())
