"""A reader that knows the ledger only from its change rows, as another process would."""

from msgspec.structs import replace

from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Consumer
from moorage.core.ledger.search import Catalog
from moorage.store import changelog
from moorage.store.api import Engine


class Follower:
    """A catalog and all consumers, kept by nothing but change rows."""

    def __init__(self, standard_classes: frozenset[str], standard_traits: frozenset[str]) -> None:
        self.catalog = Catalog(standard_classes, standard_traits)
        self.consumers: dict[str, Consumer] = {}
        self.revision = 0

    async def catch_up(self, engine: Engine) -> None:
        """Read later changes; revisions must follow one another without a gap."""
        tail = await engine.read(changelog.changes_load(self.revision))
        seen = [revision for revision, *_ in tail.batches]
        assert seen == list(range(self.revision + 1, tail.revision + 1))
        for batch in tail.batches:
            self._follow(batch.ledger)
        self.revision = tail.revision
        if tail.batches and not tail.batches[-1].ledger.renamed_classes:
            self._follow(tail.batches[-1].ledger)  # after-images are absolute: twice is as once

    def _follow(self, changes: Changes) -> None:
        self.catalog.apply(changes)
        for old, new in changes.renamed_classes.items():
            for uuid, consumer in self.consumers.items():
                held = {
                    provider: {new if n == old else n: amount for n, amount in amounts.items()}
                    for provider, amounts in consumer.allocations.items()
                }
                self.consumers[uuid] = replace(consumer, allocations=held)
        for uuid, after in changes.consumers.items():
            if after is None:
                self.consumers.pop(uuid, None)
            else:
                self.consumers[uuid] = after
