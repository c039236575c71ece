"""Generates clients from docs/reference/openapi.json and uses them with a real server.

`make generators` runs it in a separate environment. A document that a generator is known not to
accept must fail, to show that failures are detected, and so must a program in TypeScript that does
not conform to the generated types. A linter finds nothing in the document, and each planted fault.
"""

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.e2e.support.server import serve
from tests.generators.linting import faulty, lint
from tests.generators.typescript import TypeScript

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/reference/openapi.json"
PROGRAMS = Path(sys.executable).parent
SECONDS = 300
POOL = "install/azure-4"
WRONG_STATE = ('state !== "granted"', 'state !== "grantd"')
"""What to replace in the program in TypeScript, so that it must not compile."""

Generator = Callable[[Path, Path], list[str]]


def client(document: Path, folder: Path) -> list[str]:
    """Return the command that generates a whole client as a package."""
    where = ["--path", str(document), "--output-path", str(folder / "generated")]
    return ["openapi-python-client", "generate", *where, "--meta", "none", "--fail-on-warning"]


def models(document: Path, folder: Path) -> list[str]:
    """Return the command that generates types as a module."""
    where = ["--input", str(document), "--output", str(folder / "types_generated.py")]
    kinds = ["--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel"]
    return ["datamodel-codegen", *where, *kinds, "--disable-warnings"]


def generate(generator: Generator, document: Path, folder: Path) -> str | None:
    """Run a generator; return its output if it fails, otherwise None."""
    program, *words = generator(document, folder)
    done = subprocess.run(
        [str(PROGRAMS / program), *words],
        env={"PATH": f"{PROGRAMS}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout if done.returncode else None


def invalid_document(folder: Path) -> Path:
    """Write a document with a tuple, in a form of JSON Schema that the generator refuses."""
    document = json.loads(DOCUMENT.read_text())
    eta = document["components"]["schemas"]["Waiting"]["properties"]["eta_seconds"]["anyOf"][0]
    eta |= {"prefixItems": [eta["items"], eta["items"]], "items": False}
    path = folder / "invalid_document.json"
    path.write_text(json.dumps(document))
    return path


def use_client(url: str, token: str) -> None:
    """Fill a pool, wait for it and provoke a refusal, all through the generated client."""
    generated = importlib.import_module("generated")
    types = importlib.import_module("generated.models")

    def call(tag: str, operation: str, *arguments: Any, **more: Any) -> Any:
        found = importlib.import_module(f"generated.api.{tag}.{operation}")
        return found.sync(*arguments, client=caller, **more)

    with generated.AuthenticatedClient(
        base_url=url, token=token, prefix="", auth_header_name="X-Auth-Token"
    ) as caller:
        pool = call("pools", "put_pool", POOL, body=types.PoolWanted(limit=1, hold=600.0))
        assert isinstance(pool, types.Pool), pool
        assert (pool.name, pool.hold) == (POOL, 600.0)
        needs = [types.NeedWanted(pool=POOL)]
        held = call("leases", "create_lease", body=types.LeaseWanted(needs=needs, key="a"))
        assert held.state is types.LeaseState.GRANTED, held
        assert (
            call("leases", "renew_lease", held.id, body=types.HolderProof(held.token)).unheard
            is False
        )
        assert (held.hold_until - held.granted_at).total_seconds() == 600
        ticket = call("leases", "create_lease", body=types.LeaseWanted(needs=needs, key="b"))
        earliest, latest = ticket.waiting.eta_seconds
        assert 0 < earliest <= latest <= 600
        listed = call("leases", "list_leases", pool=POOL, state=types.LeaseState.WAITING)
        assert [lease.id for lease in listed.leases] == [ticket.id]
        listed = call("leases", "list_leases", pool=POOL)
        assert [lease.id for lease in listed.leases] == [held.id, ticket.id]
        assert call("leases", "release_lease", held.id).cause is types.LeaseCause.RELEASED
        assert call("pools", "pause_pool", POOL).paused is True
        changes = call("watch", "watch", after="1.0", wait=0.0)
        assert {"pool", "lease"} <= {change.kind for change in changes.changes}
        assert call("audit", "list_audit").entries[0].action == "pool.pause"
        refused = call("pools", "get_pool", "nope")
        assert isinstance(refused, types.Problem), refused
        assert refused.code == "pool_not_found"


def use_models(url: str, token: str) -> None:
    """Parse a server's responses with the generated types; no field may be missing."""
    httpx = importlib.import_module("httpx")
    types = importlib.import_module("types_generated")
    for path, kind in (
        ("/v1/pools", "PoolPage"),
        ("/v1/leases", "LeasePage"),
        ("/v1/audit", "AuditPage"),
        ("/v1/watch?after=1.0&wait=0", "Changes"),
        ("/v1/pools/nope", "Problem"),
    ):
        body = httpx.get(f"{url}{path}", headers={"X-Auth-Token": token}).text
        parsed = getattr(types, kind).model_validate_json(body)
        assert set(json.loads(body)) <= set(parsed.model_dump()), path


def complain(text: str) -> int:
    """Print what is wrong; return the exit code."""
    sys.stdout.write(f"generators: {text}\n")
    return 1


def main() -> int:
    """Generate the clients and use them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.generators", description=__doc__)
    parser.add_argument("--moorage", required=True, help="The command of the server.")
    parser.add_argument("--node-packages", required=True, help="A folder with node_modules.")
    given = parser.parse_args()
    moorage = str(Path(given.moorage).absolute())
    with TemporaryDirectory(prefix="moorage-generators-") as name:
        folder = Path(name)
        if generate(client, invalid_document(folder), folder) is None:
            return complain("the invalid document was not refused")
        for generator in (client, models):
            output = generate(generator, DOCUMENT, folder)
            if output is not None:
                return complain(f"cannot generate the {generator.__name__}:\n{output}")
        packages = Path(given.node_packages)
        if output := lint(packages, DOCUMENT):
            return complain(f"the linter finds faults:\n{output}")
        for rule, document in faulty(DOCUMENT, folder).items():
            if rule not in (lint(packages, document) or ""):
                return complain(f"the linter does not notice a fault against {rule}")
        typescript = TypeScript(packages, folder)
        if (output := typescript.generate(DOCUMENT)) or (output := typescript.compile()):
            return complain(f"the types for TypeScript do not serve:\n{output}")
        if typescript.compile(WRONG_STATE) is None:
            return complain("the compiler does not notice a wrong state of a lease")
        if output := typescript.compile():
            return complain(output)
        sys.path.insert(0, name)
        database = folder / "moorage.sqlite"
        with serve(database, "--no-access-log", moorage=[moorage]) as server:
            token = Path(f"{database}.token").read_text().strip()
            use_client(server.url, token)
            use_models(server.url, token)
            assert typescript.use(server.url, token) == "typed pool_not_found"
    sys.stdout.write(
        "generators: the description has no faults; the generated client and the types for Python"
        " and TypeScript work\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
