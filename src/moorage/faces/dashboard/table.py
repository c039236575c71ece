"""The table of all pages, actions and data, joined from the modules of `pages/`."""

from moorage.faces.dashboard.pages import audit, changes, fit, leases, overview, pools
from moorage.faces.dashboard.routing import Entry

ENTRIES: tuple[Entry, ...] = (
    *overview.ENTRIES,
    *pools.ENTRIES,
    *leases.ENTRIES,
    *fit.ENTRIES,
    *audit.ENTRIES,
    *changes.ENTRIES,
)
