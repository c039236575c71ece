"""The table of all options: the single file and the command `moorage` are both made from it."""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One option: without metavar and choices it is a switch; `many`: it may be repeated.

    One whose name does not begin with dashes is an argument: it must be there, in its place.
    """

    name: str
    meaning: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    many: bool = False
    short: str | None = None

    @property
    def word(self) -> str:
        """The name under which its value is handed on."""
        return self.name.lstrip("-").replace("-", "_").lower()

    @property
    def positional(self) -> bool:
        """Is it an argument?"""
        return not self.name.startswith("-")

    @property
    def names(self) -> list[str]:
        """All spellings."""
        return [self.name] if self.short is None else [self.short, self.name]


POOL = Option(
    "--pool", "Ask for units of this pool, 1 by default.", "POOL[=UNITS]", many=True, short="-p"
)
WISH = (
    POOL,
    Option("--hold", "The server ends the lease so long after its grant.", "TIME"),
    Option(
        "--ttl",
        "How long the lease lasts without a renewal; by default 10m, of a lease in a file an hour,"
        " but no longer than its pools permit.",
        "TIME",
    ),
    Option("--priority", "Higher goes first; 0 by default.", "NUMBER"),
    Option("--label", "A label of the lease, for people.", "NAME=VALUE", many=True),
    Option(
        "--patience",
        "How long the server keeps our place in line without hearing from us; by default 30s more"
        " than --unreachable-after.",
        "TIME",
    ),
)
PATIENCE = (
    Option("--wait", "The longest wait for the lease; 2h by default.", "TIME"),
    Option("--unreachable-after", "Give up on a silent server after this; 1m by default.", "TIME"),
    Option("--jitter", "Wait up to this long, at random, before asking; 0 by default.", "TIME"),
)
SERVER = (
    Option("--url", "The server, http://HOST:PORT; also MOORAGE_URL.", "URL"),
    Option("--token", "The token to ask with; also MOORAGE_TOKEN.", "TOKEN"),
    Option("--token-file", "A file with that token.", "FILE"),
    Option("--require", "Fail if no server is named; also MOORAGE_REQUIRE=1."),
    Option("--certificate", "Believe exactly this certificate (PEM) of the server.", "FILE"),
)
RELEASE_TIMEOUT = Option(
    "--release-timeout", "The longest try to give the lease back; 5s by default.", "TIME"
)
HANDLE = Option("--handle", "The file that keeps the lease.", "FILE")
JSON = Option("--json", "Print JSON.")

RUN = (
    *WISH,
    *PATIENCE,
    Option("--key", "The idempotency key of this attempt; by default a random one.", "KEY"),
    Option("--key-file", "Keep the key there: a second start gets the same lease.", "FILE"),
    Option(
        "--best-effort",
        "Run the command without a lease if the server cannot be reached, or does not grant"
        " one in time.",
    ),
    Option(
        "--best-effort-always",
        "The same whatever the reason: also if the pool, the token or the settings are wrong.",
    ),
    Option(
        "--on-lost",
        "If the lease is lost; term by default, warn with --best-effort or --hold.",
        choices=("warn", "term", "kill"),
    ),
    Option(
        "--kill-after",
        "KILL what is left of a command that does not heed --on-lost term; 30s by default.",
        "TIME",
    ),
    Option(
        "--on-unreachable",
        "If the server does not answer before the lease may have ended: continue and keep trying"
        " (by default), or treat the lease as lost, a margin before that.",
        choices=("wait", "lost"),
    ),
    Option(
        "--nested",
        "If an outer run holds units of the same pool: refuse (by default), share its lease, or"
        " wait for more.",
        choices=("refuse", "share", "wait"),
    ),
    RELEASE_TIMEOUT,
    Option("--outcome", "Report ok or failed, by the exit code, as evidence for the limit."),
    *SERVER,
)
ACQUIRE = (
    HANDLE,
    *WISH,
    *PATIENCE,
    Option("--another", "One more lease in the same file, even if it has one like this."),
    RELEASE_TIMEOUT,
    JSON,
    *SERVER,
)
RENEW = (
    HANDLE,
    Option("--loop", "Go on renewing until a signal comes or the file has gone."),
    JSON,
    *SERVER,
)
RETRY = (HANDLE, *PATIENCE, RELEASE_TIMEOUT, JSON, *SERVER)
RELEASE = (
    HANDLE,
    Option("--delay", "Let the server end the lease so long from now, and return at once.", "TIME"),
    RELEASE_TIMEOUT,
    JSON,
    *SERVER,
)
STATUS = (HANDLE, JSON, *SERVER)
OUTCOME = (
    Option("LEASE_ID", "The lease.", "ID"),
    Option("RESULT", "What became of it.", choices=("ok", "failed", "throttled")),
    Option("--detail", "What there is to say of it.", "TEXT"),
    JSON,
    *SERVER,
)
CAT = (
    HANDLE,
    Option("--format", "One slot per line, or with commas.", choices=("plain", "csv")),
)
TRAP = (
    HANDLE,
    Option("--signal", "Chain this trap; EXIT by default.", "NAME", many=True),
)
COMMANDS = {
    "run": (RUN, "Run a command with a lease: acquire, renew, release, on every path."),
    "lease acquire": (ACQUIRE, "Acquire a lease and keep it in a file; print the file's name."),
    "lease renew": (RENEW, "Renew the leases in a file."),
    "lease retry": (RETRY, "Release the leases in a file and ask for the same, in one step."),
    "lease release": (RELEASE, "Release the leases in a file; a second time is harmless."),
    "lease status": (STATUS, "Tell what has become of the leases in a file; 3 if one is not held."),
    "lease outcome": (
        OUTCOME,
        "Tell what became of what was started with the lease ID; see `moorage pool report`.",
    ),
    "lease cat": (CAT, "Print the slots that the leases in a file hold, without asking anybody."),
    "client.sh": ((), "Print bash functions for lease proxies: lease__acquire and others."),
    "trap": (TRAP, "Print bash code that releases a file's leases at exit, before an older trap."),
}
"""Every command of the single file, with its options and what it does."""
