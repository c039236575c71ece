"""The table of all pages, actions and data, joined from the modules of `pages/`."""

from moorage.faces.dashboard.pages import agent, fleet, machine, pools
from moorage.faces.dashboard.routing import Entry

ENTRIES: tuple[Entry, ...] = (
    *pools.ENTRIES,
    *fleet.ENTRIES,
    *machine.ENTRIES,
    *agent.ENTRIES,
)
