"""The OpenStack Placement API 1.0 to 1.39, compatible on the wire.

`app.py` is the entry point: it runs all checks in the order of the original, by the table in
`routes.py`. `microversion.py`, `negotiation.py`, `cors.py` and `policy.py` check a request's
headers, `input/` its body and query string; `handlers/` answer it. `request.py` has the input and
output of handlers, `order.py` the order of lists, `problems.py` formats every error response. May
import: `faces.web`, `service`, `core`.
"""
