"""One folder = one dialect. A face shapes requests and answers; it never decides.

`web.py` holds what every dialect needs: who is calling, request ids, bounded bodies, guarded JSON
and query strings. `placement/` speaks the OpenStack Placement API. May import: `service`, `core`,
`wire`; never `store`, and no face imports another.
"""
