"""All environment variables that Moorage knows; others with its prefix are reported as misspelt."""

import re
from collections.abc import Iterable, Mapping

from moorage.client.run.variables import GIVEN, LEASE_PREFIX, PREFIX, READ, unknown
from moorage.extras import IMAGE

ALSO = {
    "MOORAGE_CONFIG": "the settings file; by default moorage.toml, if it exists",
    "MOORAGE_PLACEMENT_CONF": "files and folders of Placement's configuration, separated by colons",
    **READ,
    **{LEASE_PREFIX + name: meaning for name, meaning in GIVEN.items()},
    IMAGE: "yes in the container images: messages then name an image instead of pip",
    "MOORAGE_POSTGRES_BIN": "folder of PostgreSQL's programs, for tests and `make run-postgres`",
    "MOORAGE_SOAK": "1: run the tests for longer, with new seeds; set by `make soak`",
    "MOORAGE_SOAK_SECONDS": "how long the simulator runs under `make soak`",
    "MOORAGE_SEED": "the seed of randomised tests, to repeat a run",
    "MOORAGE_SEEDS": "which seeds tests play: share (another for each commit), second, rest or all",
    "MOORAGE_TEST_PYTHON": "the Python that tests run the single file with",
}
"""Variables besides those of the settings, with their meaning."""


# Kubernetes sets these for each Service, such as one named moorage or moorage-api.
SERVICE_LINK = re.compile(
    r"MOORAGE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_[A-Z]+(_(PROTO|PORT|ADDR))?)?)"
)


def misspelt(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each unknown variable with Moorage's prefix, sorted by name."""
    asked = [name for name in sorted(environ) if name.startswith(PREFIX) and name not in ALSO]
    known = known_variables() if asked else frozenset()
    wrong = [name for name in asked if name not in known and not SERVICE_LINK.fullmatch(name)]
    return [_unknown(name, known) for name in wrong]


def _unknown(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # deferred: most environments have no such name

    words = [one.removeprefix(PREFIX) for one in sorted(known)]
    near = get_close_matches(name.removeprefix(PREFIX), words, 1)
    return unknown(name, [PREFIX + one for one in near])


def known_variables() -> frozenset[str]:
    """Return the variables that Moorage knows: those of settings, and `ALSO`."""
    from moorage.config.settings import FIELDS  # deferred: a tenth of the start of `moorage run`

    return frozenset(ALSO) | {PREFIX + name.upper() for name in FIELDS}
