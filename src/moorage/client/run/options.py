"""The table of the commands that need a lease, with all their options."""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One option: without metavar and choices it is a switch; `many`: it may be repeated.

    If its name does not begin with dashes, it is a positional argument, required unless `optional`.
    """

    name: str
    meaning: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    many: bool = False
    short: str | None = None
    optional: bool = False

    @property
    def word(self) -> str:
        """The name of its value in the parsed arguments."""
        return self.name.lstrip("-").replace("-", "_").lower()

    @property
    def positional(self) -> bool:
        """Whether it is a positional argument."""
        return not self.name.startswith("-")

    @property
    def names(self) -> list[str]:
        """All its names."""
        return [self.name] if self.short is None else [self.short, self.name]


POOL = Option(
    "--pool", "Acquire units of this pool, 1 by default.", "POOL[=UNITS]", many=True, short="-p"
)
WISH = (
    POOL,
    Option(
        "--any-of",
        "Acquire units of one of these pools: of the first that has them free. Join several pools"
        " of one alternative by +; name labels of slots as POOL[=UNITS]:NAME=VALUE.",
        "POOL[=UNITS],...",
        many=True,
    ),
    Option(
        "--choose",
        "If several of --any-of are free: take the least loaded (the default), or the first in"
        " order.",
        choices=("least-loaded", "order"),
    ),
    Option(
        "--slot-label",
        "Only slots with this label, for a pool with named slots; name the POOL if there are"
        " several.",
        "[POOL:]NAME=VALUE",
        many=True,
    ),
    Option("--hold", "The server ends the lease this long after its grant.", "TIME"),
    Option(
        "--ttl",
        "How long the lease lasts without a renewal; by default 10m, or 1h for a lease in a file,"
        " but at most as long as its pools permit.",
        "TIME",
    ),
    Option(
        "--priority", "Priority of the request; a higher one goes first; 0 by default.", "NUMBER"
    ),
    Option(
        "--supersede",
        "Only the newest request of this group waits: end the ticket of the group that waits.",
        "GROUP",
    ),
    Option(
        "--cancel-running",
        "With --supersede: also ask the commands of the group that run to stop.",
    ),
    Option(
        "--preemptible",
        "The server may ask the holder to stop for requests that go before this one.",
    ),
    Option(
        "--grace",
        "With --preemptible: how long the holder has to stop; 2m by default, at most 1h.",
        "TIME",
    ),
    Option("--booking", "Use the units of this booking, from its start until its end.", "ID"),
    Option(
        "--borrow",
        "Shortest hold that will do: the lease may end sooner, when a booking needs its units.",
        "TIME",
    ),
    Option("--label", "Label that is shown with the lease.", "NAME=VALUE", many=True),
    Option(
        "--no-labels",
        "Do not add the labels host, user, pid, command, job and build; also MOORAGE_LABELS=0.",
    ),
    Option(
        "--patience",
        "How long the server keeps the place in line of a silent client; by default 30s more than"
        " --unreachable-after.",
        "TIME",
    ),
)
PATIENCE = (
    Option("--wait", "Longest wait for the lease; 2h by default.", "TIME"),
    Option(
        "--unreachable-after",
        "How long to retry while the server does not answer; 1m by default.",
        "TIME",
    ),
    Option("--jitter", "Longest random delay before the first request; 0 by default.", "TIME"),
)
SERVER = (
    Option("--url", "Address of the server, http://HOST:PORT; also MOORAGE_URL.", "URL"),
    Option("--token", "Token to send to the server; also MOORAGE_TOKEN.", "TOKEN"),
    Option("--token-file", "File with the token; also MOORAGE_TOKEN_FILE.", "FILE"),
    Option("--context", "Context of `moorage login` to use; also MOORAGE_CONTEXT.", "NAME"),
    Option(
        "--certificate",
        "Trust only this server certificate (PEM); also MOORAGE_CERTIFICATE.",
        "FILE",
    ),
    Option(
        "--ca-file",
        "Trust only these certificate authorities (PEM); also MOORAGE_CA_FILE.",
        "FILE",
    ),
    Option(
        "--unlimited-without-server",
        "If no server is set, go on without a lease and without a limit, instead of failing; also"
        " MOORAGE_UNLIMITED_WITHOUT_SERVER=1.",
    ),
)
RELEASE_TIMEOUT = Option(
    "--release-timeout", "How long to try to release the lease; 5s by default.", "TIME"
)
HANDLE = Option("--handle", "File that keeps the lease.", "FILE")
JSON = Option("--json", "Print JSON.")

RUN = (
    *WISH,
    *PATIENCE,
    Option("--key", "Idempotency key of this attempt; random by default.", "KEY"),
    Option(
        "--key-file", "Keep a random key in this file: a second start gets the same lease.", "FILE"
    ),
    Option(
        "--best-effort",
        "Run the command without a lease if the server cannot be reached or does not grant one in"
        " time.",
    ),
    Option(
        "--best-effort-always",
        "As --best-effort, but for any reason, including a wrong pool, token or setting.",
    ),
    Option(
        "--unless-paused",
        "With --best-effort: do not run the command if its pool is paused when the wait is over;"
        " exit code 124.",
    ),
    Option(
        "--on-lost",
        "What to do if the lease is lost: print a warning, or send SIGTERM or SIGKILL to the"
        " command; term by default, warn with --best-effort or --hold.",
        choices=("warn", "term", "kill"),
    ),
    Option(
        "--kill-after",
        "How long after the SIGTERM of --on-lost to send SIGKILL; 30s by default.",
        "TIME",
    ),
    Option(
        "--on-unreachable",
        "What to do if the server does not answer before the lease may have ended: continue and"
        " keep trying (wait, the default), or treat the lease as lost shortly before that.",
        choices=("wait", "lost"),
    ),
    Option(
        "--nested",
        "What to do if an outer run has a lease of the same pool: refuse (the default), share its"
        " lease, or wait for more units.",
        choices=("refuse", "share", "wait"),
    ),
    Option(
        "--keep-on-failure",
        "If the command fails, keep the lease for inspection for this long, or for as long as its"
        " pools permit, instead of releasing it.",
        "TIME",
    ),
    RELEASE_TIMEOUT,
    Option(
        "--outcome", "Report ok or failed, by the exit code, as evidence for choosing the limit."
    ),
    Option(
        "--throttled-exit",
        "Report throttled if the command ends with this exit code, otherwise as --outcome.",
        "N",
        many=True,
    ),
    Option(
        "--throttled-when",
        "Report throttled if a line of the output matches this regular expression, otherwise as"
        " --outcome.",
        "REGEX",
    ),
    *SERVER,
)
WITH = Option(
    "--with",
    "End when this process ends, such as $$ in a shell; by default when the processes that started"
    " this command end; 0: with none.",
    "PID",
)
ACQUIRE = (
    HANDLE,
    *WISH,
    *PATIENCE,
    Option(
        "--another", "Acquire another lease in the same file, even if the file has an equal one."
    ),
    RELEASE_TIMEOUT,
    WITH,
    JSON,
    *SERVER,
)
RENEW = (
    HANDLE,
    Option(
        "--loop",
        "Keep renewing until the script that started this command ends, a signal arrives, or the"
        " file is removed.",
    ),
    WITH,
    Option("--for", "Longest time to renew with --loop; a day by default.", "TIME"),
    JSON,
    *SERVER,
)
RETRY = (HANDLE, *PATIENCE, RELEASE_TIMEOUT, WITH, JSON, *SERVER)
RELEASE = (
    Option("LEASE_ID", "Id of the lease, instead of a file.", "ID", optional=True),
    HANDLE,
    Option(
        "--delay",
        "Return at once; the server ends the lease after this time, or when the lease would end"
        " anyway.",
        "TIME",
    ),
    RELEASE_TIMEOUT,
    JSON,
    *SERVER,
)
STATUS = (HANDLE, JSON, *SERVER)
OUTCOME = (
    Option("LEASE_ID", "Id of the lease.", "ID"),
    Option(
        "RESULT", "Outcome of the start under the lease.", choices=("ok", "failed", "throttled")
    ),
    Option("--detail", "Details, for people.", "TEXT"),
    Option("--cause", "Short cause, the same for failures that belong together.", "TEXT"),
    JSON,
    *SERVER,
)
CAT = (
    HANDLE,
    Option(
        "--format",
        "Print one slot per line (plain), or all separated by commas (csv).",
        choices=("plain", "csv"),
    ),
)
TRAP = (
    HANDLE,
    Option(
        "--signal",
        "Signal to trap; the code runs before an existing trap; EXIT by default.",
        "NAME",
        many=True,
    ),
)
COMMANDS = {
    "run": (RUN, "Run a command with a lease: acquire it, renew it, and always release it."),
    "lease acquire": (ACQUIRE, "Acquire a lease, keep it in a file, and print the file's name."),
    "lease renew": (RENEW, "Renew the leases in a file."),
    "lease retry": (RETRY, "Release the leases in a file and ask for them again, in one step."),
    "lease release": (
        RELEASE,
        "Release the leases in a file, or the lease ID; repeating it is harmless.",
    ),
    "lease status": (
        STATUS,
        "Print the state of the leases in a file; exit code 3 if one is not granted.",
    ),
    "lease outcome": (
        OUTCOME,
        "Report the outcome of a start under a lease; see `moorage pool report`.",
    ),
    "lease cat": (CAT, "Print the slots of the leases in a file, without asking the server."),
    "client.sh": ((), "Print bash functions for lease proxies: lease__acquire and others."),
    "trap": (
        TRAP,
        "Print bash code that releases the leases in a file at exit, before older traps.",
    ),
}
"""The commands, with their options and their help texts."""

EXAMPLES = {
    "run": (
        "moorage run --pool install/azure --hold 20m -- openshift-install create cluster",
        "moorage run -p licenses=2 --wait 10m --best-effort -- make test",
    ),
    "lease acquire": ("moorage lease acquire --pool install/azure --hold 20m --handle lease.json",),
    "lease renew": ("moorage lease renew --handle lease.json --loop",),
    "lease retry": ("moorage lease retry --handle lease.json",),
    "lease release": (
        "moorage lease release --handle lease.json --delay 20m",
        "moorage lease release 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605",
    ),
    "lease status": ("moorage lease status --handle lease.json",),
    "lease outcome": ('moorage lease outcome "$MOORAGE_LEASE_ID" throttled --cause "HTTP 429"',),
    "lease cat": ("moorage lease cat --handle lease.json --format csv",),
    "client.sh": ("moorage client.sh > lease-functions.sh",),
    "trap": ('eval "$(moorage trap --handle lease.json)"',),
}
"""Command lines for the help of each command."""
