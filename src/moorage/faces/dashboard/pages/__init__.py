"""The pages: each file gathers what its templates show, and has the actions of its buttons.

`overview.py` is the first one. `fleet.py` has the fleet: `fleet_data.py` serves its map, which
`fleet_map.py` makes of all machines; `machine.py` has machines, one and all, `machine_story.py`
what happened to one and its leases, `claims_story.py` who took of it, `agent.py` one agent.
`consumers.py` has who uses what, `projects.py` how much. `pools.py` has pools, `leases.py` leases
and tickets, `bookings.py` the calendar of bookings, `fit.py` where something would fit,
`claiming.py` claims it there, `find.py` what the search box finds, `reshapes.py` has how trees have
changed, which `reshape_view.py` draws, `audit.py` who did what, `changes.py` the stream of changes,
`api_reference.py` the operations of the native API. `one_revision.py` reads the catalog as of one
revision.
"""
