"""Several answers may contain one grant: what becomes of it."""

from pathlib import Path

import pytest
from msgspec import structs

from moorage.core.admission.model import is_unconfirmed
from moorage.service.admission.confirmations import Confirmations
from tests.service.pools import pool_put, spec, wish, with_manual_clock
from tests.service.running import TESTER, Running

READ, UNREAD, UNKNOWN = True, False, None

CASES: dict[tuple[bool | None, ...], str] = {
    (READ,): "confirmed",
    (UNREAD,): "taken back",
    (UNKNOWN,): "open",
    (UNREAD, READ): "confirmed",
    (READ, UNREAD): "confirmed",
    (UNREAD, UNREAD): "taken back",
    (UNREAD, UNKNOWN): "open",
    (UNKNOWN, UNREAD): "open",
}
"""By what is known of each answer, in this order: what becomes of the grant."""


async def became(one: Running, answers: tuple[bool | None, ...], **how: bool) -> str:
    """Return what becomes of a grant."""
    admission = one.service.admission
    await pool_put(admission, "p", spec(1))
    asked = structs.replace(wish("k", "p"), attended=True)
    lease = (await admission.acquire(asked, TESTER)).lease
    assert is_unconfirmed(lease)
    shared = how.pop("shared", False)
    confirmations = Confirmations(one.service.transactor, shared=shared)
    told = [confirmations.expect(lease.id, **how) for _ in answers]
    for call, answer in zip(told, answers, strict=True):
        call(answer)
    await confirmations.stop()
    found = (await admission.queries.lease(lease.id)).lease
    if found.state == "waiting":
        return "taken back"
    return "open" if is_unconfirmed(found) else "confirmed"


@pytest.mark.parametrize("answers", CASES, ids=str)
def test_one_that_was_read_confirms(tmp_path: Path, answers: tuple[bool | None, ...]) -> None:
    """It is confirmed once any answer was read, and taken back only if certainly none was."""

    async def scenario(one: Running) -> None:
        assert await became(one, answers) == CASES[answers]

    with_manual_clock(tmp_path, scenario)


@pytest.mark.parametrize(
    ("how", "answer", "expected"),
    [
        ({"confirms": True}, READ, "open"),
        ({"confirms": True}, UNREAD, "taken back"),
        ({"shared": True}, UNREAD, "open"),
        ({"shared": True, "sole": True}, UNREAD, "taken back"),
    ],
)
def test_who_else_may_know(
    tmp_path: Path, how: dict[str, bool], answer: bool, expected: str
) -> None:
    """A client that confirms by itself is waited for; so are those of other processes."""

    async def scenario(one: Running) -> None:
        assert await became(one, (answer,), **how) == expected

    with_manual_clock(tmp_path, scenario)
