"""One folder per API. A face shapes requests and responses; it never decides.

`placement/` is the OpenStack Placement API, `v1/` Moorage's own, `boskos/` and `leaseproxy/` those
of CI tools, on top of `golang/`. `auth/` finds out who is calling. `web.py` holds what every face
needs: callers, request ids, bounded bodies, JSON, query strings. `json_lists.py` and
`long_answers.py` write long responses in pieces. `addresses.py` tells client addresses, `health.py`
answers probes, `testing.py` is for tests only. May import: `service`, `core`, `wire`; never
`store`, and no face imports another.
"""
