"""Who is calling: one authenticator per scheme, all behind `faces.web.Authenticator`.

`token.py` knows Moorage's own tokens, `noauth2.py` believes what it is told (Placement's test
scheme), `keystone.py` asks Keystone, in the threads of `lanes.py`; `local_first.py` accepts our own
tokens beside another scheme. `headers.py` finds the token in a request. Roles are turned
into those of OpenStack here and nowhere else. May import: `faces.web`, `service`, `core`.
"""
