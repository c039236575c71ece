"""All environment variables that Moorage knows; others with its prefix are reported as misspelt."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from moorage.client.run.variables import GIVEN, LEASE_PREFIX, READ, unknown
from moorage.config import FIELDS, PREFIX

ALSO = {
    "MOORAGE_CONFIG": "the settings file; by default moorage.toml, if it exists",
    **READ,
    **{LEASE_PREFIX + name: meaning for name, meaning in GIVEN.items()},
    "MOORAGE_POSTGRES_BIN": "folder of PostgreSQL's programs, for tests and `make run-postgres`",
    "MOORAGE_SOAK": "1: run the tests for longer, with new seeds; set by `make soak`",
    "MOORAGE_SOAK_SECONDS": "how long the simulator runs under `make soak`",
    "MOORAGE_SEED": "the seed of randomised tests, to repeat a run",
    "MOORAGE_SEEDS": "which seeds the tests play: share (another one for each commit), rest or all",
    "MOORAGE_TEST_PYTHON": "the Python that tests run the single file with",
}
"""Variables besides those of the settings, with their meaning."""

KNOWN = frozenset(ALSO) | {PREFIX + name.upper() for name in FIELDS}

# Kubernetes sets these for each Service, such as one named moorage or moorage-api.
SERVICE_LINK = re.compile(
    r"MOORAGE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_[A-Z]+(_(PROTO|PORT|ADDR))?)?)"
)


def misspelt(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each unknown variable with Moorage's prefix, sorted by name."""
    known = [name.removeprefix(PREFIX) for name in sorted(KNOWN)]
    return [
        unknown(name, [PREFIX + it for it in get_close_matches(name[len(PREFIX) :], known, 1)])
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in KNOWN and not SERVICE_LINK.fullmatch(name)
    ]
