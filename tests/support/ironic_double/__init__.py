"""A double of Ironic's API: one light process, time that is moved by hand, faults on demand.

`server.py` starts it and speaks HTTP, `requests.py` reads requests, `api.py`, `lists.py` and
`verbs.py` answer as Ironic does, with the words of `documents.py` and `errors.py`. `fleet.py` has
the nodes, `machine.py` their states, `agenda.py` the time, `faults.py` what goes wrong.
`recorded.txt` has the answers of a real Ironic 39, with which a test compares the double, and
`make baremetal` Ironic.
"""
