"""One folder per API. A face decodes requests and encodes responses; it makes no decisions.

`placement/` is the OpenStack Placement API, `v1/` Moorage's own, `boskos.py` and `leaseproxy.py`
those of CI tools, on top of `golang/`. `dashboard/` has pages for people; it asks the native API as
`native_api.py` describes. `auth/` identifies callers. `web.py` has what every face needs: callers,
request ids, bounded bodies, query strings; `path_table.py` finds what has an address;
`query_strings/` parses those of Placement; `json_decoding.py` decodes JSON strictly.
`json_lists.py` cuts long request bodies into pieces, `delivery.py` notes whether an answer was
read. `long_answers.py` writes long responses in pieces, `streaming.py` endless ones. `addresses.py`
parses client addresses, `health.py` answers probes, `testing.py` is for tests only. May import:
`service`, `core`, `wire`; never `store`, and no face imports another.
"""
