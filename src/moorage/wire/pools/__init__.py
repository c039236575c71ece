"""What is in pools, and what is asked of it: resources of Boskos, reports, the past, leases.

`boskos.py` is about resources of Boskos, `reports.py` about what is in a pool and how its leases
have ended, `past.py` about its counts over time and rehearsals of other limits, `templates.py`
about what makes pools on demand, `lease_changes.py` what is asked of a lease, `bookings.py` about
units that are kept on a calendar, which `icalendar.py` writes as a file for calendar programs.
Pools and leases themselves stand beside this folder. May import: `wire`.
"""
