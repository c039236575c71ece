"""`moorage metal3`: what is printed, and what is wrong with a command line."""

from pathlib import Path

import pytest
import yaml

from tests.cli.command import moorage, refusal

INSTALL = ("metal3", "install", "--image", "i:1", "--pool", "deploy", "--url", "http://m:1")


def test_install_prints_documents_that_can_be_applied() -> None:
    """The output is YAML, and has the policy with its binding."""
    done = moorage(*INSTALL, "--print")
    assert done.returncode == 0, done.stderr
    kinds = [one["kind"] for one in yaml.safe_load_all(done.stdout)]
    assert kinds[0] == "Namespace"
    assert kinds[-2:] == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, INSTALL, "give --print"),
        (2, (*INSTALL, "--print", "--namespace", "A"), "--namespace must be a DNS label"),
        (2, ("metal3", "uninstall", "--kubernetes", "ftp://m"), "ftp"),
        (2, ("metal3", "uninstall", "--kubernetes", "http://m", "--ca-file", "/none"), "No such"),
        (5, ("metal3", "uninstall", "--kubernetes", "http://127.0.0.1:9"), "no answer from"),
        (2, ("metal3", "webhook", "--tls-cert", "/none", "--tls-key", "/none"), "/none"),
    ],
)
def test_wrong_values(tmp_path: Path, code: int, words: tuple[str, ...], said: str) -> None:
    """Each ends the command with one line that says what to change."""
    assert said in refusal(code, *words, directory=tmp_path)
