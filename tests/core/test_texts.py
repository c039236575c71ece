"""Names that are shown to others contain no characters that a terminal interprets."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.client.run.printing import printable
from moorage.core.errors import Code, Error
from moorage.core.limits import COMBINING_MARKS_MAX
from moorage.core.texts import _PERHAPS_MARKS, _REFUSED, check_plain, plain

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
INVISIBLE = [
    "a\U000e0041",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f",
    "\U000e0001",
    "ali\u200bce",
    "ali\u2060ce",
    "\ufeffalice",
    "ali\u00adce",
    "a\u2064b",
    "a\ufff9b",
    "\u3164",
    "ali\uffa0ce",
    "\u1160",
    "a\u17b5",
    "\u180ea",
    "\U0001d173",
    "\U0001bca0",
]
"""Tags, which can hide a whole text, and what makes two different names look the same."""

STACKED = ["a" + "\u0301" * 5, "x" + "\u0335\u0489\u0300\u20d2\u0361\u0338", "\u0301" * 255]
STACKED += [f"a{chr(0x301) * 4}" + f"\u200d{chr(0x301) * 4}" * 9, "a\u200d\u200c\u200d\u200c\u200d"]
"""The last two: a joiner lets marks go on, and joiners alone can hide a text."""


@pytest.mark.parametrize("text", ACTED_ON)
def test_control_characters_are_refused(text: str) -> None:
    """The refusal gives the character's code point, never the character itself."""
    with pytest.raises(Error) as refusal:
        check_plain("key", f"job {text}")
    assert refusal.value.code is Code.INVALID
    assert refusal.value.message.startswith("key must not contain U+")
    assert refusal.value.message.isprintable()


@pytest.mark.parametrize("text", INVISIBLE)
def test_invisible_characters_are_refused(text: str) -> None:
    """They hide what people should see; the refusal names the first."""
    with pytest.raises(Error, match=r"label must not contain U\+[0-9A-F]{4,5}\."):
        check_plain("label", text)
    assert "\ufffd" in plain(text)
    check_plain("label", plain(text))


@pytest.mark.parametrize("text", STACKED)
def test_stacked_marks_are_refused(text: str) -> None:
    """They would cover the lines above and below; `plain` keeps the first ones."""
    with pytest.raises(
        Error, match="key must not contain more than 4 combining marks or joiners in a row"
    ):
        check_plain("key", text)
    assert text.startswith(plain(text))
    check_plain("key", plain(text))


OTHERS = [
    *("", "job-17", "jöb 17", "ジョブ", "a\u00a0b", "👩\u200d🚒", "❤\ufe0f", "می\u200cخواهم"),  # noqa: RUF001 - a word
    *("ha\u0302\u0301y", "שָּׁ֑לוֹם", "བསྒྲུབས", "น้ำ", "हिन्दी", "葛\U000e0100飾", "—…«»—…", "!!!!!!!!"),
    "e\u0301" * 100,
]


@pytest.mark.parametrize("text", OTHERS)
def test_other_characters_are_allowed(text: str) -> None:
    """Letters of any script, spaces of any width and joined emoji are allowed."""
    check_plain("key", text)
    assert plain(text) == text


@given(
    text=st.text(st.sampled_from("a \u0301\u0489\u0e49—\u200d\u200b\U000e0041\u202eé"), max_size=12)
)
def test_the_replacement_is_what_a_naive_reader_makes(text: str) -> None:
    """It is accepted, and equals the text exactly if the text is accepted."""
    refused = any(one in text for one in "\u200b\U000e0041\u202e")
    kinds = "".join("m" if unicodedata.category(one) in ("Mn", "Me", "Cf") else "." for one in text)
    try:
        check_plain("key", text)
    except Error:
        assert refused or "mmmmm" in kinds
        assert plain(text) != text
    else:
        assert not refused and "mmmmm" not in kinds
        assert plain(text) == text
    check_plain("key", plain(text))


def test_marks_are_neither_letters_nor_digits() -> None:
    """The quick look before the marks are counted misses none of them."""
    for character in map(chr, range(sys.maxunicode + 1)):
        kind = unicodedata.category(character)
        if kind in ("Mn", "Me", "Cf") and not _REFUSED.match(character):
            assert _PERHAPS_MARKS.search(character * (COMBINING_MARKS_MAX + 1)), ascii(character)


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
