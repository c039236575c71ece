"""Pools whose leases could end while hosts work are refused, and tokens that cannot govern them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.provisioning.pools import PoolError, check
from moorage.wire.admission import PoolWanted
from tests.e2e.support.server import serve


def test_pools(tmp_path: Path) -> None:
    """A pool must exist, keep its leases, and have no hold."""
    database = tmp_path / "moorage.sqlite"
    with serve(database) as server:
        secret = Path(f"{database}.token").read_text().strip()
        transport = Transport(server.url, secret)
        put = Admission(transport).pool_put
        wanted = {
            "name": "g",
            "role": "governor",
            "scope": {"pool": ["good", "frees", "ends", "missing"]},
        }
        governor = transport.request("POST", "/v1/tokens", wanted)["token"]

        def checked(name: str, token: str = governor) -> Any:
            async def run() -> Any:
                async with LeaseApi(server.url, token) as api:
                    return await check(api, [name])

            return asyncio.run(run())

        put("good", PoolWanted(limit=2, expire="keep"))
        put("frees", PoolWanted(limit=2))
        put("ends", PoolWanted(limit=2, expire="keep", hold=60.0))
        assert checked("good")[0].limit == 2
        for name, command in (
            ("missing", "moorage pool create missing --limit N --expire keep"),
            ("frees", "moorage pool change frees --expire keep"),
            ("ends", "moorage pool change ends --hold none"),
        ):
            with pytest.raises(PoolError) as error:
                checked(name)
            assert command in str(error.value)

        def made(role: str, *scope: str) -> Any:
            wanted = {"name": f"{role}-{len(scope)}", "role": role}
            within = {"scope": {"pool": [*scope]}} if scope else {}
            return transport.request("POST", "/v1/tokens", {**wanted, **within})["token"]

        for token, why in (
            (secret, "not have the role governor"),
            (made("reader"), "not have the role governor"),
            (made("operator"), "not have the role governor"),
            (made("janitor", "good"), "not have the role governor"),
            (made("governor", "frees"), "'good' is not in the scope of this token: frees"),
        ):
            with pytest.raises(PoolError, match=why) as error:
                checked("good", token)
            assert "moorage token create --name NAME --role governor --for pool=good" in str(
                error.value
            )
