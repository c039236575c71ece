"""Labels with a meaning."""

from collections.abc import Mapping

HOLDER = "holder"
"""The label of a lease that tells people for whom or for what it is held."""

GOVERNOR = "governor:"
"""The prefix of the owners of leases of governors: nobody else can have such a name."""


JOB, HOST, USER = "job", "host", "user"
"""Labels that name the holder if there is no label `holder`."""

DESCRIBING = frozenset({HOST, USER, "pid", "command", JOB, "build"})
"""Labels by which a client says where a request comes from, see `client.run.labels`.

They are no part of the request that an idempotency key stands for: the same attempt, continued by
another process, has others.
"""

SHOWN_MAX = 60
"""The characters of such a label that are shown in a name."""


def holder_of(owner: str, labels: Mapping[str, str | None]) -> str:
    """Return the name of a lease's holder for people: `job 4711 on runner-7 (ci)`.

    It is the label `holder`, or else made of the labels `job` or `user`, and `host`, or else the
    owner. Anybody can give a lease any label. Only the label `holder` of a governor replaces the
    owner; labels of others are shown with it, so that nobody passes as a host or as somebody else.
    """
    name = labels.get(HOLDER)
    if name and name != owner and owner.startswith(GOVERNOR):
        return name
    name = name or _described(owner, labels)
    return owner if not name or name == owner else f"{name} ({owner})"


def _described(owner: str, labels: Mapping[str, str | None]) -> str:
    job, user, host = (_shortened(labels.get(name)) for name in (JOB, USER, HOST))
    who = f"job {job}" if job else "" if user == owner else user
    return f"{who} on {host}" if who and host else who or host


def _shortened(value: str | None) -> str:
    value = value or ""
    return value if len(value) <= SHOWN_MAX else f"{value[: SHOWN_MAX - 3]}..."
