"""Authentication: one authenticator per scheme, all behind `faces.web.Authenticator`.

`token.py` validates Moorage's own tokens, `noauth2.py` trusts the request (Placement's test
scheme), `keystone.py` asks Keystone, in the threads of `lanes.py`; `local_first.py` accepts
Moorage's own tokens besides those of another scheme. `headers.py` finds the token in a request.
Only this package maps roles to those of OpenStack. May import: `faces.web`, `service`, `core`.
"""
