"""The test scheme `noauth2` trusts the headers, as Placement's does."""

import asyncio

import pytest

from moorage.faces.auth.noauth2 import NoAuth2
from moorage.faces.web import Caller

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        ({}, None),
        ({"x-auth-token": ""}, None),
        ({"x-auth-token": "admin"}, Caller("admin", "admin", frozenset({"admin"}))),
        ({"x-auth-token": "bob"}, Caller("bob", "bob", NONE)),
        ({"x-auth-token": "bob:p1"}, Caller("bob", "p1", NONE)),
        ({"x-auth-token": "bob:p1:q"}, Caller("bob", "p1:q", NONE)),
        (
            {"x-auth-token": "admin", "x-roles": "Reader, member"},
            Caller("admin", "admin", frozenset({"reader", "member"})),
        ),
        ({"x-auth-token": "bob", "x-project-id": "p2"}, Caller("bob", "p2", NONE)),
        (
            {"x-auth-token": "admin", "openstack-system-scope": "all"},
            Caller("admin", None, frozenset({"admin"}), system_scope=True),
        ),
    ],
)
def test_callers_of_headers(headers: dict[str, str], caller: Caller | None) -> None:
    """Token, roles, project and scope are taken unchecked from the headers."""
    assert asyncio.run(NoAuth2().authenticate(headers)) == caller
