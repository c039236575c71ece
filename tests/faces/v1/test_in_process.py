"""Calls of the native API from inside the process."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moorage.faces.native_api import RefusedError
from moorage.faces.v1 import in_process
from moorage.faces.web import Caller
from moorage.service.app import Service
from moorage.wire.operations import pools


async def broken(_request: Any) -> None:
    """Fail as only a mistake in the program does."""
    raise ZeroDivisionError


def test_the_log_names_what_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A call that fails is logged with its address, and with the request id of the refusal."""
    routes = in_process._ROUTES
    monkeypatch.setitem(routes, pools.GET_POOL, replace(routes[pools.GET_POOL], handler=broken))
    service = cast("Service", SimpleNamespace(admission=SimpleNamespace(confirmations=None)))
    caller = Caller(user_id="admin", project_id=None, roles=frozenset({"admin"}))
    with pytest.raises(RefusedError) as refused:
        asyncio.run(in_process.InProcessApi(service).call(caller, pools.GET_POOL, "a/b c"))
    assert refused.value.status == 500
    (line,) = (record.getMessage() for record in caplog.records)
    request_id, _, rest = line.partition(" ")
    assert rest == "GET /v1/pools/a/b%20c failed"
    assert request_id in refused.value.message
