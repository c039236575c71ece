"""The service object, which `serve` creates and faces use."""

from collections.abc import Callable
from dataclasses import dataclass, field

from moorage.core.clock import Clock
from moorage.core.fleet.ttl import TTL_RANGE, TtlRange
from moorage.core.limits import CANDIDATES_MAX, CHANGES_QUEUED_MAX, TOKEN_CACHE_MAX
from moorage.service.access.audit import Audit
from moorage.service.access.tokens import AccessTokens
from moorage.service.admission.service import Admission
from moorage.service.batch.batch import Batches
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.transactor import Transactor
from moorage.service.caller_turns import CallerTurns, finding_turns
from moorage.service.chores import RETENTION_BY_DEFAULT, Chores, Retention
from moorage.service.fair_turns import FairTurns
from moorage.service.feed.catalog_index import CatalogIndex
from moorage.service.feed.followers import RoomFollowers
from moorage.service.feed.peer_changes import PeerChanges
from moorage.service.feed.saved_catalog import SavedCatalog
from moorage.service.feed.watch import Watch
from moorage.service.fleet.reporters import Reporters
from moorage.service.fleet.service import Fleet
from moorage.service.ledger.imports import Imports
from moorage.service.ledger.queries import LedgerQueries
from moorage.service.ledger.reshapes import Reshapes
from moorage.service.ledger.stock_metrics import Stock
from moorage.service.operations import Operations
from moorage.service.os_vocabulary import STANDARD_CLASSES, STANDARD_TRAITS
from moorage.service.searches import Searches
from moorage.service.token_ends import TokenEnds
from moorage.service.unsent_memory import UnsentMemory
from moorage.store.api import Engine


@dataclass(slots=True)
class Service:
    """A running Moorage without its APIs. Close it with `stop`."""

    engine: Engine
    clock: Clock
    feed: PeerChanges
    index: CatalogIndex
    transactor: Transactor
    reads: LedgerQueries
    access: AccessTokens
    audit: Audit
    operations: Operations
    watch: Watch
    chores: Chores
    turns: FairTurns
    searches: Searches
    admission: Admission
    fleet: Fleet
    reporters: Reporters
    saved: SavedCatalog | None
    """Where the catalog is saved for the next start; None: nowhere."""
    unsent: UnsentMemory = field(default_factory=UnsentMemory)
    finding: CallerTurns = field(default_factory=finding_turns)
    """Searches by a text: each looks at all things of all kinds."""
    token_ends: TokenEnds = field(init=False)
    imports: Imports = field(init=False)
    reshapes: Reshapes = field(init=False)

    def __post_init__(self) -> None:
        self.imports = Imports(self.engine, self.transactor, self.feed, self.turns)
        catalog = self.index.catalog
        words = catalog.standard_classes, catalog.standard_traits
        self.reshapes = Reshapes(self.engine, self.transactor, self.clock, words)
        self.token_ends = TokenEnds(self.engine, self.access, self.admission, self.clock)
        self.chores.add(self.token_ends.look)
        self.chores.start()
        self.reporters.clearing.start()
        if self.saved is not None:
            self.saved.start(self.index)

    @classmethod
    async def start(
        cls,
        engine: Engine,
        clock: Clock,
        standard_classes: frozenset[str] = STANDARD_CLASSES,
        standard_traits: frozenset[str] = STANDARD_TRAITS,
        *,
        on_fatal: Callable[[Exception], None],
        queue_max: int = CHANGES_QUEUED_MAX,
        candidates_max: int = CANDIDATES_MAX,
        token_cache_max: int = TOKEN_CACHE_MAX,
        ttl_range: TtlRange = TTL_RANGE,
        backup_directory: str | None = None,
        retention: Retention = RETENTION_BY_DEFAULT,
        saved: SavedCatalog | None = None,
    ) -> "Service":
        """Load the index and accept requests, with standard names. Raises StoreError, `Error`."""
        turns = FairTurns()
        service_clock = ServiceClock(clock, alone=not engine.shared)
        followers = RoomFollowers()
        feed = PeerChanges(engine, followers, lambda at: service_clock.present(at, at))
        index = CatalogIndex(engine, feed, standard_classes, standard_traits, turns, saved)
        searches = Searches(turns, candidates_max, whole=index.whole)
        await index.load()
        batches = Batches(clock, service_clock, standard_classes, standard_traits, feed.mark)
        parts = (engine, feed, index, batches, turns, searches)
        transactor = Transactor(*parts, queue_max=queue_max, on_fatal=on_fatal)
        shared = (engine, transactor, feed.bell, followers.admission, service_clock)
        admission = Admission(*shared, retention.ended)
        fleet = Fleet(engine, transactor, index, followers.fleet, service_clock, clock, ttl_range)
        transactor.start()
        await admission.start()
        await fleet.start()
        reporters = Reporters(engine, transactor, index, service_clock, clock, turns)
        feed.start()
        audit = Audit(engine, transactor, clock)
        chores = Chores(engine, transactor, clock, admission, Stock(index, turns), retention)
        access = AccessTokens(engine, transactor, clock, token_cache_max)
        chores.add(access.note_uses, access.sessions.forget)
        return cls(
            engine=engine,
            clock=clock,
            feed=feed,
            index=index,
            transactor=transactor,
            reads=LedgerQueries(engine),
            access=access,
            audit=audit,
            operations=Operations(
                engine, feed, index, transactor, audit, turns, clock, backup_directory, saved
            ),
            watch=Watch(engine, feed.bell),
            admission=admission,
            fleet=fleet,
            reporters=reporters,
            saved=saved,
            chores=chores,
            turns=turns,
            searches=searches,
        )

    def end_waits(self) -> None:
        """End all waits: their requests are answered with the current state."""
        self.watch.close()
        self.admission.close()
        self.fleet.close()

    async def stop(self) -> None:
        """Finish the accepted requests, then close the database."""
        await self.admission.stop()
        await self.fleet.stop()
        await self.reporters.clearing.stop()
        await self.chores.stop()
        await self.transactor.stop()
        await self.feed.stop()
        if self.saved is not None:
            await self.saved.stop()
        await self.engine.close()
