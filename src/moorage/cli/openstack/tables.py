"""Tables as prettytable draws them, which the original programs use."""

from collections.abc import Iterator, Sequence


def centred(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with centred cells."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = "+".join(["", *("-" * (width + 2) for width in widths), ""])

    def line(cells: Sequence[str]) -> str:
        padded = (_centred(*pair) for pair in zip(cells, widths, strict=True))
        return "|".join(["", *(f" {cell} " for cell in padded), ""])

    return "\n".join([rule, line(header), rule, *map(line, rows), rule])


def _centred(text: str, width: int) -> str:
    excess = width - len(text)
    left = excess // 2 + (excess % 2 if len(text) % 2 == 0 else 0)
    return " " * left + text + " " * (excess - left)


def boxed(title: str, cells: Sequence[str]) -> str:
    """Return a table with one column and a rule between its cells, which may have several lines."""
    width = max(len(line) for cell in (title, *cells) for line in cell.split("\n"))
    rule = f"+{'-' * (width + 2)}+"

    def lines() -> Iterator[str]:
        yield rule
        for cell in (title, *cells):
            yield from (f"| {line.ljust(width)} |" for line in cell.split("\n"))
            yield rule

    return "\n".join(lines())
