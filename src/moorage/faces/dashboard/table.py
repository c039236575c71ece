"""The table of all pages, actions and data, joined from the modules of `pages/`."""

from moorage.faces.dashboard.pages import audit, changes, leases, pools
from moorage.faces.dashboard.routing import Entry

ENTRIES: tuple[Entry, ...] = (
    *pools.ENTRIES,
    *leases.ENTRIES,
    *audit.ENTRIES,
    *changes.ENTRIES,
)
