"""Names that are shown to others contain no characters that a terminal interprets."""

import sys
import unicodedata

import pytest

from moorage.client.run.printing import printable
from moorage.core.errors import Code, Error
from moorage.core.texts import check_plain

ACTED_ON = [
    "\x1b]52;c;aGk=\x07",
    "a\nb",
    "a\tb",
    "\x00",
    "\x7f",
    "\x9b31m",
    "\u061c",
    "\u202e",
    "\u2066",
    "\u2028",
]


@pytest.mark.parametrize("text", ACTED_ON)
def test_control_characters_are_refused(text: str) -> None:
    """The refusal gives the character's code point, never the character itself."""
    with pytest.raises(Error) as refusal:
        check_plain("key", f"job {text}")
    assert refusal.value.code is Code.INVALID
    assert refusal.value.message.startswith("key must not contain U+")
    assert refusal.value.message.isprintable()


@pytest.mark.parametrize("text", ["", "job-17", "jöb 17", "ジョブ", "a\u00a0b", "👩\u200d🚒"])
def test_other_characters_are_allowed(text: str) -> None:
    """Letters of any script, spaces of any kind and joined emoji are allowed."""
    check_plain("key", text)


def test_refused_characters_are_not_printed_either() -> None:
    """`printable` replaces every refused character, and all of Cc, Zl and Zp are refused."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        try:
            check_plain("key", character)
        except Error:
            assert printable(character) != character
        else:
            assert unicodedata.category(character) not in ("Cc", "Zl", "Zp")
