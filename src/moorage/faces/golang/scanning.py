"""Validates JSON and reports the first wrong byte with the messages of Go's `encoding/json`.

Source: the grammar of RFC 8259 and that package's error messages.
"""

import re

from moorage.faces.golang.texts import byte_quoted

DEPTH_MAX = 10_000
"""Nesting depth of arrays and objects."""

_BLANK = b" \t\r\n"
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_DIGITS = re.compile(rb"[0-9]*")
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}


class GoJsonError(ValueError):
    """Invalid JSON, or not the expected value; the message is Go's."""


class EndError(GoJsonError):
    """The text ends within a value. Go's message then names a blank as the wrong character."""

    def __init__(self, context: str | None = None) -> None:
        super().__init__(
            f"invalid character ' ' {context}" if context else "unexpected end of JSON input"
        )


def value_end(data: bytes) -> int:
    """Return where the first value ends, or 0 if there are only blanks.

    Raises:
        GoJsonError: it is not valid JSON.
    """
    scanner = _Scanner(data)
    scanner.blanks()
    if scanner.at == len(data):
        return 0
    scanner.value()
    return scanner.at


def check_whole(data: bytes) -> None:
    """Check that the text is exactly one value. Raises GoJsonError."""
    end = value_end(data)
    if not end:
        raise EndError
    rest = data[end:].lstrip(_BLANK)
    if rest:
        raise _wrong(rest[0], "after top-level value")


def _wrong(byte: int, context: str) -> GoJsonError:
    return GoJsonError(f"invalid character {byte_quoted(byte)} {context}")


class _Scanner:
    """Scans a text once; nesting is kept in a list instead of on the call stack."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self._open: list[int] = []

    def blanks(self) -> None:
        while self.at < len(self.data) and self.data[self.at] in _BLANK:
            self.at += 1

    def value(self) -> None:
        """Move to the end of a value."""
        self._begin()
        while self._open:
            self._go_on()

    def _peek(self) -> int:
        self.blanks()
        return self._byte()

    def _byte(self, context: str | None = None) -> int:
        """Return the next byte; `context` is for the error at the end of the text."""
        if self.at == len(self.data):
            raise EndError(context)
        return self.data[self.at]

    def _begin(self) -> None:
        """Read a scalar; or an array or object up to its first scalar or, if empty, its end."""
        while True:
            byte = self._peek()
            if byte == ord("["):
                self._enter(byte)
                if self._peek() == ord("]"):
                    self._leave()
                    return
            elif byte == ord("{"):
                self._enter(byte)
                if self._peek() == ord("}"):
                    self._leave()
                    return
                self._key()
            else:
                self._scalar(byte)
                return

    def _scalar(self, byte: int) -> None:
        if byte == ord('"'):
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte in b"-0123456789":
            self._number()
        else:
            raise _wrong(byte, "looking for beginning of value")

    def _enter(self, byte: int) -> None:
        self._open.append(byte)
        if len(self._open) > DEPTH_MAX:
            raise GoJsonError("exceeded max depth")
        self.at += 1

    def _leave(self) -> None:
        self._open.pop()
        self.at += 1

    def _key(self) -> None:
        byte = self._peek()
        if byte != ord('"'):
            raise _wrong(byte, "looking for beginning of object key string")
        self._string()
        byte = self._peek()
        if byte != ord(":"):
            raise _wrong(byte, "after object key")
        self.at += 1

    def _go_on(self) -> None:
        """Continue in the innermost array or object, after one of its values."""
        byte = self._peek()
        array = self._open[-1] == ord("[")
        if byte == (ord("]") if array else ord("}")):
            self._leave()
        elif byte == ord(","):
            self.at += 1
            if not array:
                self._key()
            self._begin()
        else:
            raise _wrong(byte, "after array element" if array else "after object key:value pair")

    def _string(self) -> None:
        self.at += 1
        while True:
            found = _PLAIN.match(self.data, self.at)
            assert found is not None  # it also matches the empty string
            self.at = found.end()
            byte = self._byte()
            self.at += 1
            if byte == ord('"'):
                return
            if byte != ord("\\"):
                raise _wrong(byte, "in string literal")
            self._escape()

    def _escape(self) -> None:
        escaped = self._take(b'bfnrt\\/"u', "in string escape code")
        for _ in range(4 if escaped == ord("u") else 0):
            self._take(b"0123456789abcdefABCDEF", "in \\u hexadecimal character escape")

    def _take(self, allowed: bytes, context: str) -> int:
        byte = self._byte(context)
        if byte not in allowed:
            raise _wrong(byte, context)
        self.at += 1
        return byte

    def _literal(self, literal: bytes) -> None:
        for wanted in literal:
            name = literal.decode("ascii")
            self._take(bytes([wanted]), f"in literal {name} (expecting {byte_quoted(wanted)})")

    def _number(self) -> None:
        self._next_is(b"-")
        if self._take(b"0123456789", "in numeric literal") != ord("0"):
            self._digits()
        if self._next_is(b"."):
            self._take(b"0123456789", "after decimal point in numeric literal")
            self._digits()
        if self._next_is(b"eE"):
            self._next_is(b"+-")
            self._take(b"0123456789", "in exponent of numeric literal")
            self._digits()

    def _next_is(self, wanted: bytes) -> bool:
        if self.at < len(self.data) and self.data[self.at] in wanted:
            self.at += 1
            return True
        return False

    def _digits(self) -> None:
        found = _DIGITS.match(self.data, self.at)
        assert found is not None  # as above
        self.at = found.end()
