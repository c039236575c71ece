"""Labels of leases, pools and agents: names with values, for people and their filters."""

from collections.abc import Mapping

from moorage.core.errors import Code, Error
from moorage.core.limits import (
    KEY_LENGTH_MAX,
    LABEL_NAME_LENGTH_MAX,
    LABELS_BYTES_MAX,
    LABELS_MAX,
)
from moorage.core.texts import check_plain, plain


def check_labels(labels: Mapping[str, str]) -> None:
    """Raise INVALID for too many labels, labels that are too long or not plain text."""
    if len(labels) > LABELS_MAX:
        raise Error(Code.INVALID, f"There may be at most {LABELS_MAX} labels.")
    for name, value in labels.items():
        if not 1 <= len(name) <= LABEL_NAME_LENGTH_MAX or len(value) > KEY_LENGTH_MAX:
            raise Error(
                Code.INVALID,
                f"Label '{name}' must have a name of 1 to {LABEL_NAME_LENGTH_MAX} characters"
                f" and a value of at most {KEY_LENGTH_MAX}.",
            )
        check_plain("The name of a label", name)
        check_plain(f"Label '{name}'", value)
    size = sum(map(_size, labels.items()))
    if size > LABELS_BYTES_MAX:
        raise Error(
            Code.INVALID,
            f"All labels together must have at most {LABELS_BYTES_MAX} bytes in UTF-8, names"
            f" included, not {size}: shorten or omit some.",
        )


def cut_to_fit(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels whose values are valid: too long ones are cut, refused characters replaced.

    Those for which there is no room in all are left out.
    """
    found, room = {}, LABELS_BYTES_MAX
    for name, value in labels.items():
        cut = plain(value[:KEY_LENGTH_MAX])
        size = _size((name, cut))
        if size <= room:
            found[name], room = cut, room - size
    return found


def _size(label: tuple[str, str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in label)
