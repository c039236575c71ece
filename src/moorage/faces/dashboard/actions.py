"""What all actions of forms share."""

from moorage.faces.dashboard.routing import address_of


def done(path: str, notice: str) -> str:
    """Return the address of the page to show after an action, with one line about it."""
    return address_of(path, {"notice": notice})
