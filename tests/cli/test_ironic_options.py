"""The gate, the governor and rollouts take the same options for Ironic and Moorage."""

from pathlib import Path

import pytest

from tests.cli.command import refusal

COMMANDS = (("gate",), ("ironic", "govern"), ("ironic", "rollout", "--nodes", "-"))
USUAL = {"--ironic": "http://127.0.0.1:9", "--pool": "deploy", "--url": "http://127.0.0.1:9"}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_wrong_values(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Each wrong value ends the command with 2 and a line that says what to change."""
    headers = tmp_path / "headers"
    headers.write_text("Authorization Basic secret\n")
    for changed, said in (
        ({"--ironic": None}, "no Ironic is set"),
        ({"--rules": "x"}, "give either --pool or --rules"),
        ({"--url": None}, "no server is set"),
        ({"--ca-file": "/none"}, "/none: No such file"),
        ({"--ironic-headers": str(headers)}, "line 1 is not NAME: VALUE"),
        ({"--token-file": "/none"}, "/none"),
    ):
        options = {name: value for name, value in (USUAL | changed).items() if value is not None}
        words = [word for pair in options.items() for word in pair]
        line = refusal(2, *command, *words, directory=tmp_path)
        assert said in line
        assert "secret" not in line
