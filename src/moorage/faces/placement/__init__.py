"""The OpenStack Placement API 1.0 to 1.39, as its clients know it from the wire.

`app.py` is the door: it runs every check in the order of the original, by the table in `routes.py`.
`microversion.py`, `negotiation.py`, `cors.py` and `policy.py` judge the head of a request, `input/`
its body and query string; `handlers/` answer it. `request.py` is what a handler gets and returns,
`order.py` the order of lists, `problems.py` shapes every refusal. May import: `faces.web`,
`service`, `core`.
"""
