"""A gate that runs for long uses the tokens that its files have now."""

import os
from pathlib import Path

from moorage.client.transport import Transport
from tests.integrations.ironic.gate.test_limit import play
from tests.integrations.ironic.gate.world import POOL, Got, World
from tests.support.ironic_double.server import IronicDouble


def replace(path: Path, text: str) -> None:
    """Replace a file at once, as programs that rotate tokens do."""
    path.with_suffix(".new").write_text(text)
    os.replace(path.with_suffix(".new"), path)


def test_rotated_tokens(tmp_path: Path) -> None:
    """Its tokens for Ironic and Moorage are replaced while it runs: it uses the new ones."""
    double = IronicDouble(2, token="old")
    own, ironic = tmp_path / "moorage.token", tmp_path / "ironic.token"
    ironic.write_text("old\n")

    async def act(world: World) -> None:
        admin = (tmp_path / "moorage.sqlite.token").read_text().strip()
        tokens = Transport(world.moorage.url, admin)
        wanted = {"name": "made", "role": "governor", "scope": {"pool": [POOL]}}
        first = tokens.request("POST", "/v1/tokens", wanted)
        own.write_text(first["token"])
        gate = await world.gate("--token-file", str(own), "--ironic-token-file", str(ironic))

        async def ask(node: str, token: str) -> Got:
            return await world.ask(gate.url, node, "active", token=token)

        assert (await ask("node-1", "old")).status == 202
        tokens.request("DELETE", f"/v1/tokens/{first['id']}")
        refused = await ask("node-2", "old")
        assert (refused.status, "A valid token is required" in refused.fault) == (409, True)

        double._token = "new"
        replace(ironic, "new\n")
        replace(own, tokens.request("POST", "/v1/tokens", {**wanted, "name": "next"})["token"])
        assert (await ask("node-2", "new")).status == 202
        await double.advance(1_000.0)
        await world.occupied(0)

    play(tmp_path, double, 2, act)
