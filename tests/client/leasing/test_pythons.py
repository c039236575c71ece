"""Leases on every Python that the machine has, the oldest one included."""

import os
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.client import Client
from tests.client.leasing.pools import leases, pool_made
from tests.client.run.test_file import OLDEST, oldest_python, pythons, version_of
from tests.client.single import BARE, ROOT, SECONDS

PROGRAM = """
import asyncio, os, sys
from moorage.client import AsyncClient, Client, LeaseLostError, NotInTimeError

pool, slots = sys.argv[1:]
client, aclient = Client(), AsyncClient()

# A block; others wait meanwhile, and keep their place if they have a key.
with client.lease(pool, hold="20m", labels={"a": "b"}, outcome=True) as lease:
    for key in (None, pool):
        try:
            client.lease(pool, wait="200ms", key=key).acquire()
        except NotInTimeError as late:
            assert "held by" in str(late)
    child = os.fork()
    if not child:
        os._exit(0 if "forked" in (lease.lost or "") else 1)
    assert os.waitpid(child, 0)[1] == 0
assert lease.lost is None

# Who asks again continues.
with client.lease(pool, key=pool) as kept:
    assert client.lease(pool, key=pool).acquire().id == kept.id

# Slots by label.
with client.lease(slots, slot={"region": "eu"}) as lease:
    assert lease.slots == {slots: [slots.replace("/", "-") + "-eu"]}

# A loss.
try:
    with client.lease(pool) as lease:
        client.admission.revoke(lease.id, "maintenance")
        while lease.lost is None:
            pass
except LeaseLostError as lost:
    assert "maintenance" in lost.reason

# asyncio: waiting in line, cancelling, a loss.
async def held(seconds):
    async with aclient.lease(pool):
        await asyncio.sleep(seconds)

async def revoked():
    async with aclient.lease(pool) as lease:
        await asyncio.get_running_loop().run_in_executor(None, client.admission.revoke, lease.id)
        await asyncio.Event().wait()

async def main():
    await asyncio.gather(held(0), held(0))
    async with aclient.lease(pool):
        task = asyncio.create_task(held(0))
        await asyncio.sleep(0.2)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
    try:
        await revoked()
    except LeaseLostError:
        print("lost", flush=True)

asyncio.run(main())
forgotten = client.lease(pool, 1).acquire()
"""


@pytest.mark.parametrize("python", pythons())
def test_leases_on_every_python_here(
    client: Client, served: tuple[str, str], python: str, tmp_path: Path
) -> None:
    """A program that uses all of it runs without an error, and leaves no lease and no ticket."""
    pool = pool_made(client, f"pythons/{uuid4()}")
    slots = pool_made(client, f"{pool}/slots", limit=None, native_slots=True)
    for region in ("us", "eu"):
        name = f"{slots}-{region}".replace("/", "-")
        client.admission.slots(slots).add([name], {"region": region})
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    fork = "ignore:This process:DeprecationWarning"  # of Python 3.12, because it has threads
    done = subprocess.run(
        [python, "-B", "-W", "error::ResourceWarning", "-W", fork, str(program), pool, slots],
        env={
            **BARE,
            "MOORAGE_URL": served[0],
            "MOORAGE_TOKEN": served[1],
            "PYTHONPATH": os.fspath(ROOT / "src"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    # Some blocks wait for a block around them, which is named.
    said = [line for line in done.stderr.splitlines() if not line.startswith("your own lease")]
    assert (done.returncode, done.stdout, said) == (0, "lost\n", [])
    ended = leases(client, pool)
    assert {one.state for one in ended} == {"ended"}
    assert [one.cause for one in ended if one.cause != "released"].count("revoked") == 2
    assert ended[0].outcome == "ok"
    assert ended[0].labels["command"] == "program.py"
    assert ended[-1].cause == "released", "at the end of the program"


def test_the_oldest_python_is_really_used() -> None:
    """The interpreter of the oldest version is that version; if there is none, this is skipped."""
    assert version_of(oldest_python()) == OLDEST
