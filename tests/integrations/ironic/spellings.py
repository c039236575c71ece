"""Spellings of one request for a provision state that Ironic 39 accepts.

`make baremetal` sends them to a real Ironic. Standard library only: it runs in another environment.
"""

from moorage.integrations.ironic.provision_request import FORM, JSON

BODY = b'{"target": "manage"}'
WHOLE = b'{"target": "manage", "node_ident": "node-1"}'

ACCEPTED = [
    ("PUT", "/v1/nodes/node-1/states/provision", JSON, BODY),
    ("PUT", "/v1/nodes/node-1/states/provision.json", JSON, BODY),
    ("PUT", "/v1/nodes/node-1/states/provision/", JSON, BODY),
    ("PUT", "/v1/nodes/node-1/%73tates/provision", JSON, BODY),
    ("PUT", "/v1/nodes/%6eode-1/states/provisio%6E", JSON + "; charset=UTF-8", BODY),
    ("PUT", "/v1/nodes/states/provision?node_ident=node-1", JSON, BODY),
    ("PUT", "/v1/nodes/states/provision", JSON, WHOLE),
    ("PUT", "/v1/chassis/nodes/node-1/states/provision", JSON, BODY),
    ("PUT", "/v1/chassis/nodes/states/provision", JSON, WHOLE),
    ("PUT", "/v1/nodes/node-1/states/provision?target=manage", None, b""),
    ("PUT", "/v1/nodes/node-1/states/provision", FORM, b"target=manage"),
    ("PUT", "/v1/nodes/node-1/states/provision/manage", None, b""),
    ("PUT", "/v1/nodes/states/provision/node-1/manage", None, b""),
    ("PUT", "/v1/nodes/states/provision/node-1?target=manage", None, b""),
]
"""Requests that Ironic 39 answers with 202: method, address, content type and body."""
