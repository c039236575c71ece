"""Keystone's tokens: validated by Keystone's v3 API and cached for a short time.

Only the roles of project-scoped and system-scoped tokens count. In the native API the role `admin`
counts only in one project (`keystone_admin_project`), `service` there and in the project of the
services (`keystone_project`). In other projects the domain's administrators may assign these roles.

Source: Identity API v3, "Validate and show information for token". Needs the extra `keystone`.
"""

import asyncio
import hashlib
import logging
import warnings
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
from keystoneauth1 import exceptions
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from msgspec import Meta, Struct
from urllib3.exceptions import InsecureRequestWarning

from moorage.core.clock import SECOND, Clock
from moorage.core.errors import Code, Error
from moorage.core.limits import KEYSTONE_TOKEN_LENGTH_MAX
from moorage.faces.addresses import address_of, source_of
from moorage.faces.auth.headers import token_of
from moorage.faces.auth.lanes import Lane, Turn
from moorage.faces.web import Caller

CACHE_MAX = 10_000
"""Tokens cached, for valid and invalid ones each; beyond this the oldest is validated again."""

ASKING_MAX = 256
"""Tokens of one lane that are being validated or wait for it."""

THREADS = 8
"""Threads of each lane."""

ANY = "*"
"""Value of the setting `keystone_admin_project` that stands for every project."""


log = logging.getLogger("moorage.auth")


class KeystoneAccess(Struct, frozen=True):
    """Address of Keystone and the credentials for it."""

    url: str
    username: str
    password: str
    project: str
    domain: str
    """Name of the domain of `username` and `project`."""
    admin_project: str
    """Name or id; `*`: every project."""
    admin_domain: str
    """Name or id."""
    ca_file: str | None
    seconds_max: float
    cache_seconds_max: float
    domain_id: str | None = None
    """Id of the domain; counts instead of the name."""
    insecure: bool = False
    """Whether not to verify Keystone's certificate."""


class _Named(Struct, frozen=True):
    id: str
    name: str = ""


class _Project(_Named, frozen=True):
    domain: _Named | None = None

    def is_called(self, project: str, domain: str) -> bool:
        """Whether it is this project of this domain, each given by name or id."""
        there = self.domain is not None and domain in (self.domain.id, self.domain.name)
        return project == self.id or (project == self.name and there)


class _Token(Struct, frozen=True):
    """The parts of Keystone's description of a token that are used."""

    user: _Named
    expires_at: Annotated[datetime, Meta(tz=True)]
    project: _Project | None = None
    roles: tuple[_Named, ...] = ()
    system: dict[str, bool] = {}


class _Answer(Struct, frozen=True):
    token: _Token


class _Verdict(Struct, frozen=True):
    caller: Caller | None
    until: int
    """Microseconds since the epoch."""


class KeystoneAuthenticator:
    """Validates tokens with Keystone and caches the results; concurrent requests share one query.

    Tokens that were valid when last validated have a separate lane, so that callers with unknown
    tokens, however many, do not delay them. In each lane clients take turns, by address.
    """

    def __init__(self, access: KeystoneAccess, clock: Clock) -> None:
        url = access.url.rstrip("/")
        self._url = url if url.endswith("/v3") else f"{url}/v3"
        self._access = access
        self._clock = clock
        self._good: dict[str, _Verdict] = {}
        self._bad: dict[str, _Verdict] = {}
        self._asking: dict[str, asyncio.Task[Caller | None]] = {}
        self._known = Lane("keystone-known", THREADS, ASKING_MAX)
        self._unknown = Lane("keystone-unknown", THREADS, ASKING_MAX)
        if access.insecure:
            # Once at the start is enough: `serve/lifecycle.py` warns of it.
            warnings.simplefilter("ignore", InsecureRequestWarning)
        name = access.domain if access.domain_id is None else None
        self._session = Session(
            auth=v3.Password(
                auth_url=self._url,
                username=access.username,
                password=access.password,
                project_name=access.project,
                user_domain_id=access.domain_id,
                user_domain_name=name,
                project_domain_id=access.domain_id,
                project_domain_name=name,
            ),
            verify=not access.insecure and (access.ca_file or True),
            timeout=access.seconds_max,
        )

    async def authenticate(self, headers: Mapping[str, str], client: str = "") -> Caller | None:
        """Return the caller that the token belongs to; None if the token is not valid.

        Raises:
            Error: UNAVAILABLE if Keystone cannot validate it, OVERLOADED if too many tokens wait.
        """
        token = token_of(headers)
        if not token or len(token) > KEYSTONE_TOKEN_LENGTH_MAX or not token.isascii():
            return None
        digest = hashlib.sha256(token.encode()).hexdigest()
        now = self._clock.now()
        for cache in (self._good, self._bad):
            verdict = cache.get(digest)
            if verdict is not None and now < verdict.until:
                return verdict.caller
        task = self._asking.get(digest)
        if task is None:
            lane = self._known if digest in self._good else self._unknown
            turn = lane.enter(_source(client))
            task = asyncio.get_running_loop().create_task(self._ask(token, digest, lane, turn))
            self._asking[digest] = task
        return await asyncio.shield(task)

    async def _ask(self, token: str, digest: str, lane: Lane, turn: Turn) -> Caller | None:
        try:
            found = await lane.ask(turn, partial(self._validate, token))
        except (exceptions.ClientException, OSError, ValueError) as error:
            log.error("Keystone at %s cannot validate a token: %s", self._url, error)
            raise Error(
                Code.UNAVAILABLE, "The identity service cannot be asked now; try again."
            ) from None
        finally:
            del self._asking[digest]
        verdict = self._judged(found)
        cache = self._bad if verdict.caller is None else self._good
        self._bad.pop(digest, None)
        self._good.pop(digest, None)
        if len(cache) >= CACHE_MAX:
            del cache[next(iter(cache))]
        cache[digest] = verdict
        return verdict.caller

    def _validate(self, token: str) -> _Token | None:
        """Ask Keystone, in a thread; None if it knows no such token."""
        response = self._session.get(
            f"{self._url}/auth/tokens?nocatalog",
            headers={"X-Subject-Token": token, "Accept": "application/json"},
            raise_exc=False,
            redirect=False,
        )
        if response.status_code == 404:
            return None
        if response.status_code != 200:
            raise ValueError(f"it answered {response.status_code}")
        return msgspec.json.decode(response.content, type=_Answer).token

    def _foreign(self, project: _Project | None) -> frozenset[str]:
        """Return the roles that do not count for Moorage if assigned in this project."""
        access = self._access
        if project is None or access.admin_project == ANY:
            return frozenset()
        if project.is_called(access.admin_project, access.admin_domain):
            return frozenset()
        if project.is_called(access.project, access.domain_id or access.domain):
            return frozenset({"admin"})
        return frozenset({"admin", "service"})

    def _judged(self, found: _Token | None) -> _Verdict:
        now = self._clock.now()
        until = now + int(self._access.cache_seconds_max * SECOND)
        if found is None:
            return _Verdict(None, until)
        expires = int(found.expires_at.timestamp() * SECOND)
        if expires <= now:
            return _Verdict(None, until)
        # Domain-scoped roles do not count: a customer's domain admin must not administer Moorage.
        here = found.project is not None or found.system
        caller = Caller(
            user_id=found.user.id,
            project_id=found.project.id if found.project is not None else None,
            roles=frozenset(role.name.lower() for role in found.roles if here),
            system_scope=bool(found.system),
            foreign=self._foreign(found.project),
        )
        return _Verdict(caller, min(until, expires))


def _source(client: str) -> str:
    address = address_of(client)
    return client if address is None else source_of(address)
