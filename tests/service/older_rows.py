"""Rows of admission as the last release has stored them: one pool, a slot, a lease and a ticket.

Copied from a database of that release; its JSON has none of the members that came later.
"""

from typing import Any

import apsw
import psycopg

from moorage.store.migrations import migrations

LAST = 11
"""The newest migration of that release."""

HELD, WAITING = "01a2183c-2eca-7c2f-bf8b-1f6bba11898f", "01a2183c-2ecd-716b-a9b0-684f7366425b"
AT = 1_700_000_000_000_000
DIGEST = "2c89bc728de6995fc0a12e59c400c83cd0e265846dcd7747d39a0811d1740f1f"
"""Of a request of `me` for a unit of the pool `p`."""

POOL = (
    '{"name":"p","spec":{"limit":null,"ttl":60000000,"ttl_max":60000000,"hold":null,"cooldown":0,'
    '"lock_delay":0,"pacing":null,"quota":null,"queue_max":10000,"labels":{},"on_retry":"keep",'
    '"expire":"free","proxy_ttl":null,"askers":null,"priority_max":null,"hold_max":null,'
    '"queue_max_per_owner":null},"paused":false,"generation":1,"occupied":1,"waiting":1,'
    f'"gangs":0,"resting":[],"paced_at":0,"wake_at":null,"created_at":{AT},"updated_at":{AT},'
    '"growth":null,"awaited":{"free":1}}'
)
SLOT = (
    f'{{"pool":"p","name":"a","state":"leased","owner":"me","lease":"{HELD}","user_data":{{}},'
    f'"updated_at":{AT},"expires_at":null,"dynamic":false,"rests_until":0}}'
)


def lease(uuid: str, key: str, arrival: int, state: str, rest: str) -> str:
    """Return the JSON of a lease or ticket."""
    return (
        f'{{"id":"{uuid}","owner":"me","key":"{key}","digest":"{DIGEST}","needs":[{{"pool":"p",'
        f'"units":1,"state":"free","dest":"leased"}}],"state":"{state}","priority":0,'
        f'"arrival":{arrival},"ttl":60000000,"hold":null,"patience":30000000,"labels":{{}},'
        f'"forced":false,"pull":false,"keep":false,"asked_at":{AT},"heard_until":{AT + 60_000_000},'
        f'"allocations":null,{rest},"ended_at":null,"cause":null,"detail":"","outcome":null}}'
    )


GRANTED = (
    f'"token":{{"epoch":1,"revision":1,"n":0}},"granted_at":{AT},"hold_until":null,'
    '"slots":{"p":["a"]}'
)
TICKET = '"token":null,"granted_at":null,"hold_until":null,"slots":{}'

ROWS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("pool (name, quota, gangs, wake_at, body)", ("p", None, 0, None, POOL)),
    ("slot (pool, name, state, owner, lease, body)", ("p", "a", "leased", "me", HELD, SLOT)),
    *(
        (
            "lease (id, owner, key, arrival, pools, state, ended_at, body)",
            (uuid, "me", key, n, '["p"]', state, None, lease(uuid, key, n, state, rest)),
        )
        for n, (uuid, key, state, rest) in enumerate(
            ((HELD, "k1", "granted", GRANTED), (WAITING, "k2", "waiting", TICKET)), 1
        )
    ),
    *(
        (
            "lease_need (pool, arrival, lease, rank, units, pull, forced, owner, state, token,"
            " asked_at, granted_at, ended_at, cause)",
            ("p", n, uuid, 0, 1, *flags, "me", state, token, AT, granted, None, None),
        )
        for n, uuid, flags, state, token, granted in (
            (1, HELD, (False, False), "granted", "1.1.0", AT),
            (2, WAITING, (False, False), "waiting", None, None),
        )
    ),
    *(
        ("lease_due (lease, heard_until, due)", (uuid, AT + 60_000_000, AT + 60_000_000))
        for uuid in (HELD, WAITING)
    ),
)
CLOCKS = (
    "UPDATE clock SET revision = 1, compacted = 1",
    "UPDATE admission_clock SET arrivals = 2",
    f"UPDATE service_clock SET alive_at = {AT}",
)


def write(url: str) -> None:
    """Make a database of the last release with these rows."""
    sqlite = url.startswith("sqlite")
    connection: Any = (
        apsw.Connection(url.removeprefix("sqlite:///"))
        if sqlite
        else psycopg.connect(url, autocommit=True)
    )
    mark = "?" if sqlite else "%s"
    for one in migrations("sqlite" if sqlite else "postgres")[:LAST]:
        connection.execute(one.text)
        values = (one.number, one.name, one.checksum)
        connection.execute(f"INSERT INTO migration VALUES ({mark}, {mark}, {mark})", values)
    for into, row in ROWS:
        marks = ", ".join([mark] * len(row))
        connection.execute(f"INSERT INTO {into} VALUES ({marks})", row)
    for statement in CLOCKS:
        connection.execute(statement)
    connection.close()
