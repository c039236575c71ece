"""Bodies with one long list, which is cut into members that are decoded one by one."""

from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus

from moorage.core.limits import AROUND_BYTES_MAX, BULK_PROVIDERS_MAX, PROVIDER_BYTES_MAX
from moorage.faces.json_lists import (
    Cut,
    LongMemberError,
    ManyMembersError,
    NoListError,
    cut,
)
from moorage.faces.web import RefusalError
from moorage.service.fair_turns import Pieces
from moorage.service.ledger.bulk import check_count

Run = list[tuple[int, int]]
"""Start and end of adjacent members of a list."""

RUN_BYTES = 8_192
"""Members of this many bytes are decoded together: less than half a millisecond."""


async def parts_of(body: bytes, pieces: Pieces, name: str, check: Callable[[bytes], object]) -> Cut:
    """Find the members of the list in a body.

    Args:
        body: the body.
        pieces: for pauses.
        name: of the list, for the message.
        check: decodes a body without a list; usually it raises a more precise error.

    Raises RefusalError, and `Error`: LIMIT_EXCEEDED.
    """
    work = cut(body, members_max=BULK_PROVIDERS_MAX, member_bytes_max=PROVIDER_BYTES_MAX)
    try:
        return await pieces.driven(work)
    except NoListError:
        check(body[:AROUND_BYTES_MAX])
        raise misfit(f"it must be an object with a list `{name}`") from None
    except ManyMembersError:
        check_count(BULK_PROVIDERS_MAX + 1)
        raise
    except LongMemberError:
        raise RefusalError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The description of one provider is longer than {PROVIDER_BYTES_MAX} bytes.",
        ) from None
    except ValueError as error:
        raise misfit(str(error)) from None


def runs_of(members: Iterable[tuple[int, int]]) -> Iterator[Run]:
    """Divide members into those that are decoded together; a long one is alone."""
    run: Run = []
    for begin, end in members:
        if run and end - run[0][0] > RUN_BYTES:
            yield run
            run = []
        run.append((begin, end))
    if run:
        yield run


def misfit(reason: str) -> RefusalError:
    """Return the refusal of a body that does not fit its type."""
    return RefusalError(HTTPStatus.BAD_REQUEST, f"The body is invalid: {reason}")
