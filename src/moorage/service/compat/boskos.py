"""Boskos on pools with named slots: acquire, release, heartbeat, reset, configuration.

A configuration is applied at the start, when its file changes, and when a slot becomes free that
the configuration does not name in that pool (such as those of growing pools): it may then have to
be removed.
"""

import asyncio
import logging
import os
from collections.abc import Iterable
from functools import partial
from uuid import uuid4

from moorage.core.admission.compat.boskos import Acquired, AcquireRequest
from moorage.core.admission.compat.slots_by_name import Counts, counts
from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Slot
from moorage.core.admission.slot_config import ResourceType, SlotConfig
from moorage.core.errors import Code, Error
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service import errors
from moorage.service.admission.queries import pools_all
from moorage.service.background import Loop
from moorage.service.batch.transactor import Transactor
from moorage.service.compat.boskos_cases import (
    Acquire,
    AcquireNamed,
    Sync,
)
from moorage.service.compat.boskos_config import ConfigFileError, slot_config_parse
from moorage.service.compat.boskos_strict_cases import AcquireStrict, TakeNamed
from moorage.service.ids import lease_id_new
from moorage.store.admission import reads
from moorage.store.admission.reads import SlotCount
from moorage.store.api import Engine

LOOK_SECONDS = 1.0
"""Time between two checks of the file."""

PERIOD_SECONDS = 60.0
"""The longest time between two rounds, in which expired slots are marked."""

GATHER_SECONDS = 0.1
"""Pause between two rounds, so that one covers slots that become free at the same time."""

log = logging.getLogger("moorage.boskos")

Seen = tuple[int, int, int]
"""A file's inode, modification time and size."""


class Boskos:
    """The resources of one service. Close it with `stop`."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        config: str | None,
        *,
        strict: bool,
        native: bool = False,
    ) -> None:
        """Create it.

        Args:
            engine: for reads.
            transactor: for changes.
            config: path of the configuration; None: the existing slots are kept.
            strict: answer exactly as Boskos does, even where that does harm.
            native: native leases may be released, updated and reset here, too.
        """
        self._engine = engine
        self.transactor = transactor
        self._config = config
        self._strict = strict
        self.native = native
        self._roster = SlotConfig()
        self._named: dict[str, ResourceType] = {}
        """The entry of the configuration for each slot name."""
        self._seen: Seen | None = None
        self._stale = asyncio.Event()
        self._waited = 0.0
        """Seconds since the configuration was last applied."""
        self._loop = Loop(log, "cannot follow the configuration", GATHER_SECONDS)

    async def start(self) -> None:
        """Apply the configuration, then follow it. Raises ConfigFileError, Error."""
        if self._config is None:
            return
        self._take(self._read(self._config))
        await self.sync()
        self.transactor.follow(self._note)
        self._loop.start(partial(self._follow, self._config))

    async def stop(self) -> None:
        """Stop the loop."""
        await self._loop.stop()

    async def acquire(
        self,
        pool: str,
        state: str,
        dest: str,
        owner: str,
        request_id: str,
        *,
        attended: bool = False,
    ) -> Acquired:
        """Poll for a slot of a type. Raises `Error`: NO_CAPACITY, POOL_UNKNOWN.

        `attended`, here and below: it will be known whether the caller reads the answer.
        """
        fresh, slot_name = lease_id_new(), str(uuid4())
        request = AcquireRequest(pool, state, dest, owner, request_id, fresh, slot_name, attended)
        return await self.transactor.submit(
            AcquireStrict(request) if self._strict else Acquire(request)
        )

    async def acquire_named(
        self, state: str, dest: str, owner: str, names: Iterable[str], *, attended: bool = False
    ) -> list[Slot]:
        """Acquire slots by name, the longest unused first. Raises `Error`: NO_CAPACITY."""
        request = AcquireRequest("", state, dest, owner, "", LeaseId(""), "", attended)
        wanted = sorted(set(names))
        fresh = [lease_id_new() for _ in wanted]
        if self._strict:
            return await self.transactor.submit(TakeNamed(request, wanted, fresh))
        return await self.transactor.submit(AcquireNamed(request, wanted, fresh))

    async def counts(self, pool: str) -> Counts:
        """Count a type's slots. Raises `Error`: NO_CAPACITY if it has none."""
        with errors.translated():
            slots = await self._engine.read(reads.slots_load(pool))
        if not slots:
            raise Error(Code.NO_CAPACITY, f"no available resource {pool}, try again later.")
        return counts(slots)

    async def all_counts(self) -> list[SlotCount]:
        """Count all slots, by type, state and owner."""
        with errors.translated():
            return await self._engine.read(reads.slots_count())

    async def sync(self) -> None:
        """Apply the configuration. Raises `Error`."""
        pools = self._roster.pools | await self._slotted()
        case = Sync(self._roster, pools, str(uuid4()), for_tickets=not self._strict)
        for problem in await self.transactor.submit(case):
            log.warning("%s: %s", self._config, problem)

    async def _slotted(self) -> set[str]:
        """Return the names of all pools that have slots, or may have."""
        pools = (await pools_all(self._engine)).values()
        return {pool.name for pool in pools if pool.spec.limit is None}

    def _take(self, roster: SlotConfig) -> None:
        self._roster, self._named = roster, roster.named

    def _read(self, path: str) -> SlotConfig:
        try:
            with open(path, "rb") as file:
                self._seen = _seen(file.fileno())
                text = file.read()
            return slot_config_parse(text)
        except OSError as error:
            raise ConfigFileError(f"{path}: cannot be read: {error.strerror}") from None
        except ConfigFileError as error:
            raise ConfigFileError(f"{path}: {error}") from None

    def _note(self, changes: Changes, when: When) -> None:
        """Check whether a committed change freed a slot that may have to be removed."""
        for (pool, name), slot in changes.slots.items():
            entry = self._named.get(name)
            if slot is None or slot.owner or (entry is not None and entry.pool == pool):
                continue
            self._stale.set()

    async def _follow(self, path: str) -> float:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._stale.wait()
        except TimeoutError:
            self._waited += LOOK_SECONDS
        try:
            changed = self._is_changed(path)
            if changed:
                self._take(self._read(path))
                log.info("%s has changed, reading it again", path)
            if changed or self._stale.is_set() or self._waited >= PERIOD_SECONDS:
                self._stale.clear()
                self._waited = 0.0
                await self.sync()
        except (ConfigFileError, Error) as error:
            log.error("cannot apply the configuration: %s", error)
        return GATHER_SECONDS

    def _is_changed(self, path: str) -> bool:
        """Return whether the file has changed since the last call; a missing one has not."""
        try:
            seen = _seen(path)
        except OSError as error:
            if self._seen is not None:
                log.warning(
                    "cannot read %s: %s; the last content stays in force", path, error.strerror
                )
            self._seen = None
            return False
        before, self._seen = self._seen, seen
        return seen != before


def _seen(file: str | int) -> Seen:
    status = os.stat(file)
    return status.st_ino, status.st_mtime_ns, status.st_size
