"""Which texts are UUIDs in a body, and that deciding this is fast."""

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
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.query_strings.uuids import UUID_PATTERN, uuid_normal

RP = "4e6e6d4c-1111-4000-8000-000000000001"
PLAIN = "[{}]*(?:urn:)?(?:uuid:)?[{}]*(?:-*[0-9a-fA-F]){32}-*[{}]*"
"""The rule as a simple expression; its time grows with the square of the length."""


def decoded(kind: Any, value: Any) -> None:
    """Decode a value from its JSON text."""
    body_decode(json.dumps(value).encode(), kind)


def refusal(kind: Any, value: Any) -> None:
    """Check that a value is refused because it does not validate."""
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
def test_long_texts_are_refused_quickly(text: str) -> None:
    """Nothing else runs meanwhile; one such body once took 10 seconds."""
    begun = thread_time()
    refusal(schemas.AggregatesPut, [text])
    refusal(schemas.AggregatesPut, [text[:250]] * 30)
    refusal(schemas.AggregatesPut, [RP] * 500 + [text])
    assert re.fullmatch(UUID_PATTERN, text) is None
    assert thread_time() - begun < 1.0


def test_every_accepted_uuid_is_normalized() -> None:
    """Every accepted spelling is also normalized, so that none is stored as it was sent."""
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
def test_uuids_are_those_that_python_accepts(seed: int) -> None:
    """Combinations of braces, prefixes and dashes are accepted just as by Python's `UUID`."""
    random = Random(seed)
    for _ in range(500):
        text = "".join(random.choices(SPELLINGS, k=random.randrange(1, 7)))
        wanted = re.fullmatch(PLAIN, text) is not None
        assert (re.fullmatch(UUID_PATTERN, text) is not None) == wanted
        if wanted:
            assert uuid_normal(text) == str(UUID(text))
