"""When tokens were last used is written in portions, and never lost by a failure."""

from moorage.core.clock import Instant
from moorage.service.access import tokens
from moorage.service.access.tokens import USED_EVERY, WRITTEN_MAX, TokenUses


def test_a_portion_has_a_limit() -> None:
    """The uses of a large fleet are written one portion after the other, earliest first."""
    uses = TokenUses(10_000)
    for n in range(2 * WRITTEN_MAX + 1):
        uses.note(str(n), None, Instant(n))
    portions = [uses.take() for _ in range(4)]
    assert [len(portion) for portion in portions] == [WRITTEN_MAX, WRITTEN_MAX, 1, 0]
    assert next(iter(portions[0])) == "0"
    assert list(portions[2]) == [str(2 * WRITTEN_MAX)]


def test_a_failed_portion_is_taken_again() -> None:
    """A later use of the same token is kept."""
    uses = TokenUses(10)
    uses.note("a", None, Instant(1))
    taken = uses.take()
    uses.note("a", None, Instant(1 + USED_EVERY))
    uses.put_back(taken)
    assert uses.take() == {"a": 1 + USED_EVERY}
    uses.put_back({"b": Instant(2)})
    assert uses.take() == {"b": 2}


def test_memory_is_bounded() -> None:
    """Beyond the limit the first noted use is forgotten, written or not."""
    uses = TokenUses(2)
    for n in range(3):
        uses.note(str(n), None, Instant(n))
    assert [uses.last(str(n)) for n in range(3)] == [None, 1, 2]
    assert uses.take() == {"1": 1, "2": 2}


def test_the_stored_use_counts() -> None:
    """A process that has just started writes nothing for a token that was used recently."""
    uses = TokenUses(2)
    uses.note("a", Instant(5), Instant(4 + tokens.USED_EVERY))
    assert uses.take() == {}
    uses.note("a", Instant(5), Instant(5 + tokens.USED_EVERY))
    assert uses.take() == {"a": 5 + USED_EVERY}
