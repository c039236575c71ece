"""The table of all pages, actions and data, joined from the modules of `pages/`."""

from moorage.faces.dashboard.pages import (
    agent,
    api_reference,
    audit,
    bookings,
    changes,
    claiming,
    consumers,
    find,
    fit,
    fleet,
    leases,
    machine,
    overview,
    pools,
    projects,
    reshapes,
)
from moorage.faces.dashboard.routing import Entry

ENTRIES: tuple[Entry, ...] = (
    *overview.ENTRIES,
    *pools.ENTRIES,
    *leases.ENTRIES,
    *bookings.ENTRIES,
    *fleet.ENTRIES,
    *machine.ENTRIES,
    *agent.ENTRIES,
    *find.ENTRIES,
    *consumers.ENTRIES,
    *projects.ENTRIES,
    *fit.ENTRIES,
    *claiming.ENTRIES,
    *reshapes.ENTRIES,
    *audit.ENTRIES,
    *changes.ENTRIES,
    *api_reference.ENTRIES,
)
