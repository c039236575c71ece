"""Valid names of Kubernetes."""

import re

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

LABEL_TEXT = "a DNS label: a-z, 0-9 and '-', at most 63"
"""The description of a label, for people."""


def is_label(name: str) -> bool:
    """Return whether a name is a DNS label (RFC 1123), as those of namespaces are."""
    return LABEL.fullmatch(name) is not None
