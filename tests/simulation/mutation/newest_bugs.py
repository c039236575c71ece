"""Planted bugs of `superseding.py`, of lines whose newest goes first, and of `templates.py`."""

from tests.simulation.mutation.bug import Bug

CORE = "src/moorage/core/admission"

NEWEST_BUGS = (
    Bug(
        "I22",
        "a superseded ticket waits on, and is granted",
        f"{CORE}/superseding.py",
        'draft.end(marked, "superseded", by(request.id))',
        "draft.put(marked)",
    ),
    Bug(
        "I22",
        "two tickets of a group wait",
        f"{CORE}/superseding.py",
        'if ticket.state == "waiting":',
        'if ticket.state == "ended":',
    ),
    Bug(
        "I22",
        "a group is that of all projects",
        f"{CORE}/superseding.py",
        "    project = project_of(owner)\n",
        '    project: str | None = ""\n',
    ),
    Bug(
        "I22",
        "a holder is asked to stop although nobody wants it",
        f"{CORE}/superseding.py",
        "if request.cancel_running and stop_until is None and lease.kept is None:",
        "if stop_until is None and lease.kept is None:",
    ),
    Bug(
        "I22",
        "what runs is freed at once",
        f"{CORE}/superseding.py",
        'if ticket.state == "waiting":',
        "if ticket.state:",
    ),
    Bug(
        "I22",
        "a holder that does not stop keeps its lease",
        f"{CORE}/model.py",
        "ends = first_end(ends, stops_at(lease, timeline.downtime))",
        "ends = lease.hold_until",
    ),
    Bug(
        "I22",
        "an outage is time to stop in",
        f"{CORE}/model.py",
        "Instant(until + max(0, downtime - lease.stop_downtime))",
        "until",
    ),
    Bug(
        "I22",
        "a retry waits although a newer request came",
        f"{CORE}/leases.py",
        "if old.superseded_by is not None:",
        'if old.superseded_by == "":',
    ),
    Bug(
        "I8",
        "the oldest goes first where the newest should",
        f"{CORE}/admit.py",
        "return (-ticket.priority, -ticket.arrival if ticket.newest else ticket.arrival)",
        "return (-ticket.priority, ticket.arrival)",
    ),
    Bug(
        "I23",
        "a pool on demand goes while it is used",
        f"{CORE}/templates.py",
        "if pool.waiting or pool.occupied or pool.paused or pool.booked_until is not None:",
        "if pool.paused or pool.booked_until is not None:",
    ),
    Bug(
        "I23",
        "a pool on demand goes while units rest",
        f"{CORE}/templates.py",
        "until = Instant(max(at, rested) + demand.idle)",
        "until = Instant(at + demand.idle)",
    ),
)
