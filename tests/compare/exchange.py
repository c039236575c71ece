"""One request and the answers of both sides."""

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
from tests.compare.oracle import matches_model
from tests.compare.sides import Sides
from tests.e2e.support.peer import Answer

CANDIDATES = "/allocation_candidates"
LIMIT_SINCE = 16
MADE_UP = "a-uuid-that-the-server-has-made-up"


@dataclass(slots=True)
class Exchange:
    """One request, both answers, and the data needed to compare them.

    `beginnings` are the times of the standard names on each side, `unlimited` is the original's
    answer without a limit, `matches_model` is True if Moorage's candidates are those of the model.
    """

    ask: Ask
    known: Generations
    theirs: Answer
    ours: Answer
    beginnings: tuple[str, str]
    unlimited: Answer | None = None
    matches_model: bool = False

    async def complete(self, sides: Sides) -> None:
        """Send the further requests that the comparison needs."""
        limited = limit_of(self.ask) is not None and (self.ask.minor or 0) >= LIMIT_SINCE
        if self.finds_candidates and limited:
            request = without_limit(self.ask).bytes(self.known)
            self.unlimited = await sides.original.peer.send(request)
        if any(each.aspect in ("candidates", "limit") for each in self.differences()):
            self.matches_model = await matches_model(sides.original, self.ask, self.ours.json())

    @property
    def finds_candidates(self) -> bool:
        """Whether both sides answered a search for candidates."""
        return (
            self.ask.path == CANDIDATES
            and self.ask.method == "GET"
            and self.theirs.status == self.ours.status == 200
        )

    @property
    def writes(self) -> bool:
        """Whether either side may have made a change; after a server error that is unknown."""
        done = {answer.status // 100 for answer in (self.theirs, self.ours)} & {2, 5}
        return self.ask.method not in ("GET", "HEAD") and bool(done)

    @property
    def carried_out(self) -> bool:
        """Whether both sides executed the request; a search must also have found candidates."""
        if self.finds_candidates:
            return bool(self.theirs.json()[REQUESTS])
        return self.theirs.status < 300 and self.ours.status < 300

    @property
    def parts(self) -> bool:
        """Whether the states now differ, because only one side made a change."""
        return self.writes and (self.theirs.status < 300) != (self.ours.status < 300)

    @property
    def body(self) -> Any:
        """The value that was sent as the body."""
        return resolved(self.ask.body, self.known)

    @property
    def their_detail(self) -> str:
        """The detail of the original's refusal."""
        return detail_of(self.theirs)

    @property
    def our_detail(self) -> str:
        """The detail of Moorage's refusal."""
        return detail_of(self.ours)

    @property
    def our_text(self) -> str:
        """The body of Moorage's answer as text, whatever its format."""
        return self.ours.body.decode("utf-8", "replace")

    def made_up(self) -> tuple[str, str] | None:
        """Return the generated UUIDs of a provider created without a UUID, theirs and ours."""
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
        """Yield the differences."""
        theirs, ours = self.theirs, self.ours
        if (made := self.made_up()) is not None:
            theirs, ours = renamed(theirs, made[0]), renamed(ours, made[1])
        if theirs.status != ours.status:
            # All other differences follow from this one.
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
    """Return a refusal's text after the sentence of its status; empty for other answers."""
    value = meaning(answer)
    if not isinstance(value, dict) or "errors" not in value:
        return ""
    detail: str = value["errors"][0]["detail"]
    return detail.partition("\n\n")[2].strip()


def renamed(answer: Answer, uuid: str) -> Answer:
    """Return an answer with a generated UUID replaced."""
    headers = {name: value.replace(uuid, MADE_UP) for name, value in answer.headers.items()}
    return replace(
        answer, headers=headers, body=answer.body.replace(uuid.encode(), MADE_UP.encode())
    )


def removal(uuid: str) -> Ask:
    """Return the request that deletes a provider."""
    path = f"/resource_providers/{uuid}"
    return plain("DELETE", path, template="/resource_providers/{provider}")
