"""Cuts a JSON object with one long list into the members of the list, in small steps.

A JSON decoder processes a whole body at once and blocks everything else meanwhile. This scanner
looks only at quotes, brackets and commas, chunk by chunk. So each member, and the text around the
list, must still be decoded strictly: malformed JSON is detected only there.
"""

from collections.abc import Generator

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import AROUND_BYTES_MAX

CHUNK_BYTES = 1 << 16
"""Bytes that one step scans: less than a millisecond for any content."""

_BLANKS = b" \t\r\n"
_QUOTE, _BACKSLASH, _COMMA, _LIST, _LIST_END = b'"\\,[]'

_MARKS = np.zeros(256, np.bool_)
_MARKS[list(b'",[]{}')] = True
_RISES = np.zeros(256, np.int64)
_RISES[list(b"[{")], _RISES[list(b"]}")] = 1, -1

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class NoListError(ValueError):
    """The body has no list near its beginning."""


class LongMemberError(ValueError):
    """A member of the list is too long."""


class ManyMembersError(ValueError):
    """The list has too many members."""


class Cut(Struct, frozen=True):
    """A body in parts."""

    around: bytes
    """The body, with an empty list in place of the long one."""
    members: list[tuple[int, int]]
    """Start and end of each member within the body."""


def cut(body: bytes, *, members_max: int, member_bytes_max: int) -> Steps[Cut]:
    """Cut out the first list that is a value of the body's outermost object.

    Raises:
        NoListError: there is no such list near the beginning.
        ManyMembersError, LongMemberError: the list exceeds its limits.
        ValueError: the body ends too early, or is too long after the list.
    """
    start = yield from _past_blanks(body, 0)
    reader = _Reader()
    marks = reader.read(body, start, start + AROUND_BYTES_MAX)
    begins = np.flatnonzero((marks.found == _LIST) & (marks.depths == 2))
    if not len(begins):
        raise NoListError
    begin = last = int(marks.at[begins[0]]) + 1
    members: list[tuple[int, int]] = []
    low, closed = start + AROUND_BYTES_MAX, False
    while True:
        for end, depth in marks.ends(begin, members_max - len(members) + 1):
            if len(members) == members_max:
                raise ManyMembersError
            if end - last > member_bytes_max:
                raise LongMemberError
            members.append((last, end))
            last, closed = end + 1, depth < 2
            if closed:
                break
        if closed:
            break
        if low >= len(body):
            raise ValueError("the list does not end")
        if low - last > member_bytes_max:
            raise LongMemberError
        yield
        marks = reader.read(body, low, low + CHUNK_BYTES)
        low += CHUNK_BYTES
    if body[last - 1] != _LIST_END:
        raise ValueError("an object ends that has not begun")
    if len(members) == 1 and not body[begin : last - 1].strip(_BLANKS):
        members = []
    rest = yield from _rest(body, last)
    return Cut(body[start:begin] + b"]" + rest, members)


class _Marks(Struct, frozen=True):
    """Brackets and commas outside of strings: position, character, nesting depth after each."""

    at: Ints
    found: Bytes
    depths: Ints

    def ends(self, begin: int, most: int) -> list[tuple[int, int]]:
        """Return the ends of the members of the list that begins there, and the depth after each.

        Returns the first `most` of them.
        """
        ends = ((self.found == _COMMA) & (self.depths == 2)) | (self.depths < 2)
        first = np.flatnonzero(ends & (self.at >= begin))[:most]
        return list(zip(self.at[first].tolist(), self.depths[first].tolist(), strict=True))


class _Reader:
    """Finds the brackets and commas of a JSON text, chunk by chunk."""

    def __init__(self) -> None:
        self._depth = 0
        self._inside = 0
        self._escaped = False

    def read(self, body: bytes, low: int, high: int) -> _Marks:
        """Return the marks of the next chunk."""
        chunk = body[low:high]
        codes = np.frombuffer(chunk, np.uint8)
        marked = _MARKS[codes]
        self._unmark_escaped(chunk, codes, marked)
        at = np.flatnonzero(marked)
        found = codes[at]
        quotes = found == _QUOTE
        inside = (np.cumsum(quotes) + self._inside) % 2
        if len(inside):
            self._inside = int(inside[-1])
        plain = ~quotes & (inside == 0)
        at, found = at[plain], found[plain]
        depths = np.cumsum(_RISES[found]) + self._depth
        if len(depths):
            self._depth = int(depths[-1])
        return _Marks(at + low, found, depths)

    def _unmark_escaped(self, chunk: bytes, codes: Bytes, marked: npt.NDArray[np.bool_]) -> None:
        """Unmark characters after a backslash that is not escaped itself."""
        carried, self._escaped = self._escaped, False
        if carried:
            marked[:1] = False
        if b"\\" not in chunk:
            return
        slashes = np.flatnonzero(codes == _BACKSLASH)
        if carried and slashes[0] == 0:
            slashes = slashes[1:]
        # In a run of backslashes the 1st, 3rd, 5th ... escape the character that follows.
        order = np.arange(len(slashes))
        begins = np.maximum.accumulate(np.where(np.diff(slashes, prepend=-2) != 1, order, 0))
        escaped = slashes[(order - begins) % 2 == 0] + 1
        self._escaped = bool(len(escaped)) and bool(escaped[-1] == len(chunk))
        marked[escaped[escaped < len(chunk)]] = False


def _past_blanks(body: bytes, at: int) -> Generator[None, None, int]:
    while True:
        piece = body[at : at + CHUNK_BYTES]
        left = piece.lstrip(_BLANKS)
        at += len(piece) - len(left)
        if left or not piece:
            return at
        yield


def _rest(body: bytes, at: int) -> Generator[None, None, bytes]:
    """Return the text after the list, with leading and long trailing blanks removed."""
    at = yield from _past_blanks(body, at)
    end = len(body)
    while end - at > AROUND_BYTES_MAX:
        if body[end - AROUND_BYTES_MAX : end].strip(_BLANKS):
            raise ValueError(f"more than {AROUND_BYTES_MAX} bytes follow the list")
        end -= AROUND_BYTES_MAX
        yield
    return body[at:end]
