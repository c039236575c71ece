"""The OpenStack Placement API 1.0 to 1.39, as its clients know it from the wire.

`app.py` is the door: it runs every check in the dialect's own order, `routes.py` is the table it
runs on. One file per resource holds its handlers. `microversion.py`, `negotiation.py`,
`policy.py`, `schemas.py` and `queries.py` judge a request's form; `json_schemas.py` and
`explain.py` say what is wrong with a body. `candidates.py` writes the answer to a search, with
`allocation_requests.py`; `order.py` has the order of lists. `problems.py` shapes every refusal.
May import: `faces.web`, `service`, `core`.
"""
