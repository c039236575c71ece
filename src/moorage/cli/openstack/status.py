"""`placement-status upgrade check`: the original's checks, of Moorage's own database."""

import json
import os
import sys
from textwrap import wrap

from moorage.cli.openstack.arguments import parser_of
from moorage.cli.openstack.configuration import database_of, files_of, loaded
from moorage.cli.openstack.tables import boxed
from moorage.config.oslo_files import OsloFiles
from moorage.config.placement_conf import policy_path
from moorage.store.api import StoreError
from moorage.store.open import schema_of

PROGRAM = "placement-status"
FAILURE = 2
"""Exit code if a check finds something that must be changed."""

ERROR = 255
"""Exit code if the checks cannot be made."""

JSON_POLICY = (
    "Your policy file is JSON-formatted which is deprecated. You need to switch to YAML-formatted"
    " file. Use the ``oslopolicy-convert-json-to-yaml`` tool to convert the existing"
    " JSON-formatted files to YAML in a backwards-compatible manner:"
    " https://docs.openstack.org/oslo.policy/latest/cli/oslopolicy-convert-json-to-yaml.html."
)
"""The original's text."""


def main() -> None:
    """Run the program and exit."""
    parser = parser_of(PROGRAM, version=False)
    groups = parser.add_subparsers(dest="group", required=True, metavar="{upgrade}")
    upgrade = groups.add_parser("upgrade")
    upgrade.add_argument("check")
    # Accepted, but without an effect: so it is in the original 16.
    upgrade.add_argument("--json", action="store_true", help="has no effect")
    asked = parser.parse_args()
    files = files_of(PROGRAM, asked.files)
    settings = loaded(PROGRAM, files)
    database = database_of(PROGRAM, settings)
    try:
        schema = schema_of(database)
        wrong = None if schema.is_current else f"the database has the schema {schema.applied}"
    except StoreError as error:
        wrong = str(error)
    if wrong is not None:
        print(f"Error:\n{wrong}; run `placement-manage db sync`")  # noqa: T201 - its output
        sys.exit(ERROR)
    sys.exit(check(files))


def check(files: list[str]) -> int:
    """Print the results and return the exit code.

    The first two always succeed: in our ledger every provider has a root, and every consumer a
    record.
    """
    policy = JSON_POLICY if _is_json(policy_path(OsloFiles(files))) else None
    results = (
        ("Missing Root Provider IDs", None),
        ("Incomplete Consumers", None),
        ("Policy File JSON to YAML Migration", policy),
    )
    cells = [
        f"Check: {name}\nResult: {'Success' if details is None else 'Failure'}\n"
        f"Details: {_wrapped(details)}"
        for name, details in results
    ]
    print(boxed("Upgrade Check Results", cells))  # noqa: T201 - the output of the program
    return 0 if policy is None else FAILURE


def _wrapped(details: str | None) -> str:
    return "None" if details is None else "\n".join(wrap(details, 60, subsequent_indent="  "))


def _is_json(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, encoding="utf-8") as stream:
        try:
            json.load(stream)
        except ValueError:
            return False
    return True
