"""After a restore, later grants are void and tokens still rise."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.support.leasing import NOAUTH, POOL, asked, called, pool_made, token_of, wish
from tests.e2e.support.peer import Peer, differences
from tests.e2e.support.server import MOORAGE, serve


def lasting(key: str) -> dict[str, Any]:
    """Ask for a unit; nothing ends by itself."""
    return wish(key, ttl=600.0, patience=600.0)


async def is_current(url: str, lease: Any) -> bool:
    """Is a lease's token that of a live lease?"""
    answer = await called(url, "GET", f"/v1/leases/verify?pool={POOL}&token={lease['token']}")
    assert answer.status == 200, answer
    current: bool = answer.json()["current"]
    return current


async def before(url: str, copy: str) -> dict[str, Any]:
    """Grant leases, back up, then continue."""
    await pool_made(url, limit=3)
    kept, given = await asked(url, lasting("kept")), await asked(url, lasting("given"))
    made = await called(url, "POST", "/v1/database/backup", {"name": copy})
    assert made.status == 200, made
    done = await called(url, "DELETE", f"/v1/leases/{given['id']}?token={given['token']}")
    assert done.status == 200, done
    later = [await asked(url, lasting(f"later-{n}")) for n in range(2)]
    assert {lease["state"] for lease in later} == {"granted"}
    assert not await is_current(url, given)
    return {"kept": kept, "given": given, "later": later}


async def after(url: str, had: dict[str, Any]) -> None:
    """What was granted after the backup is not known; what it holds is; new tokens are higher."""
    old = [had["kept"], had["given"], *had["later"]]
    highest = max(token_of(lease["token"]) for lease in old)
    for lease in had["later"]:
        path, proof = f"/v1/leases/{lease['id']}", {"token": lease["token"]}
        assert not await is_current(url, lease)
        assert (await called(url, "POST", f"{path}/renew", proof)).status == 404
        assert (await called(url, "DELETE", f"{path}?token={lease['token']}")).status == 404
    # Its release is not in the backup: it is occupied until its TTL, or a later release.
    for lease in (had["kept"], had["given"]):
        path, proof = f"/v1/leases/{lease['id']}", {"token": lease["token"]}
        assert await is_current(url, lease)
        assert (await called(url, "POST", f"{path}/renew", proof)).status == 200
    pool = (await called(url, "GET", f"/v1/pools/{POOL}")).json()
    assert pool["occupied"] == 2
    again = await asked(url, lasting("later-0"))
    assert again["state"] == "granted"
    assert again["id"] not in {lease["id"] for lease in old}
    assert token_of(again["token"]) > highest
    assert token_of(again["token"])[0] > highest[0], "the epoch has not risen"
    for lease in had["later"]:
        path, stale = f"/v1/leases/{again['id']}", lease["token"]
        renewed = await called(url, "POST", f"{path}/renew", {"token": stale})
        assert (renewed.status, renewed.json()["code"]) == (409, "token_stale")
        released = await called(url, "DELETE", f"{path}?token={stale}")
        assert (released.status, released.json()["code"]) == (409, "token_stale")
    assert await is_current(url, again)
    async with Peer(url) as peer:
        assert await differences(peer) == []


def test_tokens_after_a_restore(tmp_path: Path) -> None:
    """Granted after the backup: refused after the restore; every new token is greater than all."""
    database, copy = tmp_path / "m.sqlite", "copy.sqlite"
    with serve(database, *NOAUTH, "--backup-directory", str(tmp_path)) as server:
        had = asyncio.run(before(server.url, copy))
    words = [*MOORAGE, "db", "restore", str(tmp_path / copy), "--database", f"sqlite:///{database}"]
    subprocess.run(words, check=True, capture_output=True)
    with serve(database, *NOAUTH) as server:
        asyncio.run(after(server.url, had))
