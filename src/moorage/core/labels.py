"""Labels of leases, pools and agents: names with values, for people and their filters."""

from collections.abc import Mapping

from moorage.core.errors import Code, Error
from moorage.core.limits import KEY_LENGTH_MAX, LABEL_NAME_LENGTH_MAX, LABELS_MAX
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


def cut_to_fit(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels whose values are valid: too long ones are cut, refused characters replaced."""
    return {name: plain(value[:KEY_LENGTH_MAX]) for name, value in labels.items()}
