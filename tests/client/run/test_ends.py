"""What the end of a ticket means for who waits with it: one row for each cause."""

from typing import get_args

import pytest

from moorage.client.run.api_types import lease_of
from moorage.client.run.exit_codes import CODES, NOT_GRANTED, RUN_BY_CAUSE
from moorage.client.run.handles.commands import WHY_CODES
from moorage.client.run.lease.acquire import NotGrantedError, check_end
from moorage.wire.enums import Cause
from tests.client.run.test_words import lease_json

ENDS = {
    "released": "withdrawn",
    "withdrawn": "withdrawn",
    "retried": "withdrawn",
    "handed_over": "withdrawn",
    "revoked": "revoked",
    "superseded": "superseded",
    "hold_over": None,
    "ttl_over": None,
    "unheard": None,
    "gave_up": None,  # that of another process with this key
    "unconfirmed": None,
    "preempted": None,
}
"""The `why` of each cause; None: nobody wanted the end, so the client asks again."""


def test_every_cause_is_decided() -> None:
    """A new cause of the server needs a row here, and perhaps one in `check_end`."""
    assert set(ENDS) == set(get_args(Cause))


@pytest.mark.parametrize(("cause", "why"), ENDS.items())
def test_what_the_client_does(cause: str, why: str | None) -> None:
    """It gives up with its own reason exactly if somebody wanted the end."""
    ended = lease_of(lease_json(state="ended", cause=cause, detail="by ops"))
    if why is None:
        check_end(ended)
        return
    with pytest.raises(NotGrantedError, match=r"by ops|superseded by the newer") as stopped:
        check_end(ended)
    assert stopped.value.why == why


def test_each_reason_has_its_own_exit_code() -> None:
    """Of `moorage run` and of the commands with a file; both differ from all other reasons."""
    codes = [
        RUN_BY_CAUSE[why] for why in ("withdrawn", "revoked", "superseded", "refused", "timed_out")
    ]
    assert len(set(codes)) == 5
    codes = [WHY_CODES[why] for why in ("withdrawn", "revoked", "superseded")]
    assert len({*codes, NOT_GRANTED}) == 4
    assert [CODES[code] for code in codes] == ["withdrawn", "revoked", "superseded"]
