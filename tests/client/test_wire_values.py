"""Every value that the API describes survives the way to the client and back to the server."""

import json
import os
import subprocess
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from moorage.client.decoding import UndecodableError, decode, decode_exactly
from moorage.faces.v1.decoding import fitted
from moorage.faces.v1.ledger.explain import query_of
from moorage.wire.admission import PoolWanted
from moorage.wire.dataclass import members
from moorage.wire.ledger import GroupAsked, Question
from tests.client.run.test_file import pythons
from tests.client.single import BARE, ROOT, SECONDS
from tests.client.wire_values import Description, encoded, wire_types

VALUES = 12
"""Values of each schema."""

DESCRIPTION = Description()
TYPES = wire_types()
NAMES = sorted(DESCRIPTION.schemas.keys() & TYPES.keys())


def values_of(name: str) -> Iterator[Any]:
    """Yield random values of a schema."""
    for number in range(VALUES):
        random = Random(f"{name}/{number}")
        yield DESCRIPTION.value(DESCRIPTION.schemas[name], random)


def test_all_schemas_are_types_of_the_wire() -> None:
    """No schema is left out because its name is another one."""
    others = DESCRIPTION.schemas.keys() - TYPES.keys()
    assert [name for name in others if "enum" not in DESCRIPTION.schemas[name]] == []
    assert {"Question", "ClaimWanted", "PoolWanted", "Lease", "Agent"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_values_survive_both_ways(name: str) -> None:
    """The server reads what the client writes, and the client reads what the server writes."""
    kind = TYPES[name]
    for value in values_of(name):
        at_server = fitted(value, kind)
        assert decode(kind, value) == decode_exactly(kind, value) == at_server, value
        assert fitted(encoded(decode(kind, value)), kind) == at_server, value
        sent = json.loads(msgspec.json.encode(members(at_server)))
        assert decode(kind, sent) == at_server, value


def test_examples_survive_both_ways() -> None:
    """So do the examples of the description."""
    examples = [(name, value) for name, value in DESCRIPTION.requests() if name in TYPES]
    assert len(examples) > 10
    for name, value in examples:
        kind = TYPES[name]
        assert fitted(encoded(decode_exactly(kind, value)), kind) == fitted(value, kind), name


# Decodes lines of JSON, each a pair of a type's name and a value, and encodes them again.
PROGRAM = """
import json, sys
from datetime import datetime
from importlib import import_module
from moorage.client.decoding import decode
from moorage.wire.dataclass import members

for line in sys.stdin:
    module, name, value = json.loads(line)
    decoded = decode(getattr(import_module(module), name), value)
    print(json.dumps(members(decoded), default=datetime.isoformat))
"""


@pytest.mark.parametrize("python", pythons())
def test_values_survive_on_every_python(python: str) -> None:
    """Also on the oldest one, whose types have no unions such as `str | list[str]`."""
    asked = [(name, value) for name in NAMES for value in values_of(name)]
    lines = (json.dumps((TYPES[name].__module__, name, value)) for name, value in asked)
    done = subprocess.run(
        [python, "-c", PROGRAM],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env={**BARE, "PYTHONPATH": os.fspath(ROOT / "src"), "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(asked)
    for (name, value), answer in zip(asked, answers, strict=True):
        kind = TYPES[name]
        assert fitted(json.loads(answer), kind) == fitted(value, kind), (name, value)


def test_a_union_is_decoded_by_the_form_of_its_value() -> None:
    """A member that may be a name or a list of names may be either, also within one list."""
    group = decode(GroupAsked, {"required": ["A", ["B", "C"]], "member_of": [["d"]]})
    assert (group.required, group.member_of) == (["A", ["B", "C"]], [["d"]])
    pacing = decode(PoolWanted, {"pacing": {"interval": 1.0, "burst": 2}}).pacing
    assert pacing is not None and not isinstance(pacing, str) and pacing.burst == 2
    assert decode(PoolWanted, {"pacing": "auto"}).pacing == "auto"
    assert decode(PoolWanted, {"pacing": None}).pacing is None
    for wrong in ({"required": [1]}, {"required": "A"}, {"required": [None]}):
        with pytest.raises(UndecodableError, match=r"expected .* got"):
            decode(GroupAsked, wrong)


def test_what_people_write_is_read_exactly() -> None:
    """A misspelled member is refused by its name, at any depth; a missing one is named."""
    for wrong, names in (
        ({"groups": [{"requird": ["A"]}]}, "requird"),
        ({"groups": [], "root_forbid": []}, "root_forbid"),
        ({}, "groups"),
        ({"groups": [3]}, "GroupAsked"),
        ({"groups": {}}, "list"),
    ):
        with pytest.raises(ValueError, match=names):
            decode_exactly(Question, wrong)
    assert decode(Question, {"groups": [{"newer": 1}]}).groups == [GroupAsked()]


def test_the_examples_of_questions_are_questions() -> None:
    """They have names for which a search can be made."""
    (example,) = (v for name, v in DESCRIPTION.requests() if name == "Question")
    query = query_of(decode_exactly(Question, example))
    assert query.groups[0].resources
