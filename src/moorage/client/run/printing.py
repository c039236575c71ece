r"""Text from outside, as it may be shown on a terminal and in a log.

Owners, keys, labels and messages come from others. Escape sequences in them could rewrite the
screen or fill the clipboard, line breaks could forge lines, and direction marks could hide what is
really there. So what cannot be printed is shown as Python writes it: `\x1b`.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text in one line, without anything that a terminal would act on."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def printable_json(text: str) -> str:
    """Return a JSON text that means the same; its line breaks stay, they are between values."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    """Return a character as JSON writes it in ASCII."""
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
