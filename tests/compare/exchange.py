"""One request and both answers to it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.compare.generate.candidates import (
    REQUESTS,
    candidate_differences,
    limit_of,
    surplus_summaries,
    without_limit,
)
from tests.compare.generate.requests import Ask, Generations, plain, resolved
from tests.compare.judge.differences import (
    Difference,
    body_differences,
    header_differences,
    meaning,
)
from tests.compare.oracle import modelled
from tests.compare.sides import Sides
from tests.e2e.support.peer import Answer

CANDIDATES = "/allocation_candidates"
LIMIT_SINCE = 16
MADE_UP = "a-uuid-that-the-server-has-made-up"


@dataclass(slots=True)
class Exchange:
    """One request, both answers, and what is needed to compare them.

    `beginnings` are the times of the standard names on each side, `unlimited` is the original's
    answer without a limit, `modelled` tells whether Moorage's candidates are those of the model.
    """

    ask: Ask
    known: Generations
    theirs: Answer
    ours: Answer
    beginnings: tuple[str, str]
    unlimited: Answer | None = None
    modelled: bool = False

    async def complete(self, sides: Sides) -> None:
        """Ask what the comparison needs besides."""
        limited = limit_of(self.ask) is not None and (self.ask.minor or 0) >= LIMIT_SINCE
        if self.finds_candidates and limited:
            request = without_limit(self.ask).bytes(self.known)
            self.unlimited = await sides.original.peer.send(request)
        if any(each.aspect in ("candidates", "limit") for each in self.differences()):
            self.modelled = await modelled(sides.original, self.ask, self.ours.json())

    @property
    def finds_candidates(self) -> bool:
        """Have both found candidates?"""
        return (
            self.ask.path == CANDIDATES
            and self.ask.method == "GET"
            and self.theirs.status == self.ours.status == 200
        )

    @property
    def writes(self) -> bool:
        """Has either carried out a change? After a server error nobody knows."""
        done = {answer.status // 100 for answer in (self.theirs, self.ours)} & {2, 5}
        return self.ask.method not in ("GET", "HEAD") and bool(done)

    @property
    def carried_out(self) -> bool:
        """Have both done, or found, what was asked for?"""
        if self.finds_candidates:
            return bool(self.theirs.json()[REQUESTS])
        return self.theirs.status < 300 and self.ours.status < 300

    @property
    def parts(self) -> bool:
        """Have the two parted? Only one of them has carried out a change."""
        return self.writes and (self.theirs.status < 300) != (self.ours.status < 300)

    @property
    def body(self) -> Any:
        """The value that was sent as the body."""
        return resolved(self.ask.body, self.known)

    @property
    def their_detail(self) -> str:
        """What the original says in a refusal."""
        return detail_of(self.theirs)

    @property
    def our_detail(self) -> str:
        """What Moorage says in a refusal."""
        return detail_of(self.ours)

    @property
    def our_text(self) -> str:
        """What Moorage says in a refusal, whichever form it has."""
        return self.ours.body.decode("utf-8", "replace")

    def made_up(self) -> tuple[str, str] | None:
        """Return the UUIDs of a provider that was made without naming one, theirs and ours."""
        if self.ask.what != "POST /resource_providers" or not (
            self.theirs.status == self.ours.status in (200, 201)
        ):
            return None
        theirs, ours = (
            answer.headers["location"].rpartition("/")[2] for answer in (self.theirs, self.ours)
        )
        named = isinstance(self.body, dict) and "uuid" in self.body
        return None if theirs == ours or named else (theirs, ours)

    def differences(self) -> Iterator[Difference]:
        """Yield what differs."""
        theirs, ours = self.theirs, self.ours
        if (made := self.made_up()) is not None:
            theirs, ours = renamed(theirs, made[0]), renamed(ours, made[1])
        if theirs.status != ours.status:
            # Whatever else differs follows from it.
            yield Difference("status", theirs.status, ours.status)
            return
        yield from header_differences(theirs, ours, self.beginnings)
        if not self.finds_candidates:
            yield from body_differences(theirs, ours)
            return
        limit = None if self.unlimited is None else limit_of(self.ask)
        whole = self.unlimited or theirs
        minor = self.ask.minor or 0
        yield from candidate_differences(whole.json(), ours.json(), limit, minor)
        if limit is not None:
            yield from surplus_summaries(theirs.json(), minor)


def detail_of(answer: Answer) -> str:
    """Return what a refusal says beyond the sentence of its status; nothing for other answers."""
    value = meaning(answer)
    if not isinstance(value, dict) or "errors" not in value:
        return ""
    detail: str = value["errors"][0]["detail"]
    return detail.partition("\n\n")[2].strip()


def renamed(answer: Answer, uuid: str) -> Answer:
    """Return an answer with a UUID that was made up replaced."""
    headers = {name: value.replace(uuid, MADE_UP) for name, value in answer.headers.items()}
    return replace(
        answer, headers=headers, body=answer.body.replace(uuid.encode(), MADE_UP.encode())
    )


def removal(uuid: str) -> Ask:
    """Return the request that removes a provider."""
    path = f"/resource_providers/{uuid}"
    return plain("DELETE", path, template="/resource_providers/{provider}")
