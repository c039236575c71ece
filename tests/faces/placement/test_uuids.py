"""What is taken for a UUID in a body, and that it takes no time to say so."""

import json
import re
from random import Random
from time import thread_time
from typing import Any
from uuid import UUID

import pytest

from moorage.core.limits import UUID_LENGTH_MAX
from moorage.faces.placement.input import schemas
from moorage.faces.placement.input.bodies import body_decode
from moorage.faces.placement.input.uuids import UUID_PATTERN, uuid_normal
from moorage.faces.placement.problems import ProblemError

RP = "4e6e6d4c-1111-4000-8000-000000000001"
PLAIN = "[{}]*(?:urn:)?(?:uuid:)?[{}]*(?:-*[0-9a-fA-F]){32}-*[{}]*"
"""The rule as one would write it down; it takes time that grows with the square of the length."""


def decoded(kind: Any, value: Any) -> None:
    """Decode a value from its JSON text."""
    body_decode(json.dumps(value).encode(), kind)


def refusal(kind: Any, value: Any) -> None:
    """See that a value is refused, as one that does not validate."""
    with pytest.raises(ProblemError) as refused:
        decoded(kind, value)
    assert refused.value.status == 400
    assert refused.value.detail.startswith("JSON does not validate: ")


LONG = 20_000


@pytest.mark.parametrize(
    "text",
    [
        "{" * LONG,
        "{" * LONG + "a",
        "{" * LONG + "-" * LONG + RP + "}" * LONG + "x",
        "-a" * LONG,
        "urn:uuid:" + "}" * LONG,
    ],
    ids=["braces", "a letter behind", "everything", "dashes", "prefixes"],
)
def test_no_text_takes_long_to_be_no_uuid(text: str) -> None:
    """Whoever judges it, nothing else runs meanwhile; one such body once took 10 seconds."""
    begun = thread_time()
    refusal(schemas.AggregatesPut, [text])
    refusal(schemas.AggregatesPut, [text[:250]] * 30)
    refusal(schemas.AggregatesPut, [RP] * 500 + [text])
    assert re.fullmatch(UUID_PATTERN, text) is None
    assert thread_time() - begun < 1.0


def test_no_spelling_of_a_uuid_is_too_long_to_be_read() -> None:
    """What is taken for a UUID is also read as one, and never stored as it was sent, or as none."""
    braces = (UUID_LENGTH_MAX - len(RP)) // 2
    longest = "{" * braces + RP + "}" * (UUID_LENGTH_MAX - len(RP) - braces)
    assert uuid_normal(longest) == RP
    decoded(schemas.ProviderPost, {"name": "a", "uuid": longest})
    assert uuid_normal(longest + "}") is None
    refusal(schemas.ProviderPost, {"name": "a", "uuid": longest + "}"})
    refusal(schemas.AggregatesPut, [longest + "}"])
    refusal(schemas.AggregatesPut, [RP] * 500 + [longest + "}"])


SPELLINGS = ("{", "}", "urn:", "uuid:", "-", "a", RP, RP.replace("-", ""), RP[:18])


@pytest.mark.parametrize("seed", range(20))
def test_a_uuid_is_what_python_takes_for_one(seed: int) -> None:
    """However braces, prefixes and dashes are put together, as long as prefixes are in order."""
    random = Random(seed)
    for _ in range(500):
        text = "".join(random.choices(SPELLINGS, k=random.randrange(1, 7)))
        wanted = re.fullmatch(PLAIN, text) is not None
        assert (re.fullmatch(UUID_PATTERN, text) is not None) == wanted
        if wanted:
            assert uuid_normal(text) == str(UUID(text))
