"""The cases of templates of pools: each writes an audit row, in the transaction of its change."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import structs

from moorage.core.admission import templates
from moorage.core.admission.facts import Facts
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Template
from moorage.core.admission.templates import TemplateWish
from moorage.core.service_time import When
from moorage.service.admission.pool_cases import NamedCase
from moorage.service.batch.world import Changes, Keys, World


class TemplateView(NamedTuple):
    """A template, and how many pools requests have made from it."""

    template: Template
    pools: int


def views_of(facts: Facts) -> list[TemplateView]:
    """Return all loaded templates by name."""
    return [
        TemplateView(template, facts.made.get(name, 0))
        for name, template in sorted(facts.templates.items())
    ]


@dataclass(slots=True)
class TemplateCase(NamedCase[TemplateView | None]):
    """A change of one template by an operator; the answer is the template, None once it is gone."""

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(templates=True))

    def conclude(self, world: World, when: When) -> TemplateView | None:
        found = world.admission.templates.get(self.name)
        return (
            None if found is None else TemplateView(found, world.admission.made.get(self.name, 0))
        )


@dataclass(slots=True)
class TemplatePut(TemplateCase):
    """Create or update a template. `generation` is the expected one; 0: it must not exist."""

    wish: TemplateWish
    generation: int | None

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        before = facts.templates.get(self.name)
        changes, made = templates.put(facts, when.wall, self.name, self.wish, self.generation)
        self.leave("pool_template.put", _shown(before), _shown(made), when)
        return Changes(admission=changes)


@dataclass(slots=True)
class TemplateDelete(TemplateCase):
    """Delete a template; its pools stay until they are idle."""

    def decide(self, world: World, when: When) -> Changes:
        before = _shown(world.admission.templates.get(self.name))
        changes = templates.delete(world.admission, self.name)
        self.leave("pool_template.delete", before, None, when)
        return Changes(admission=changes)


def _shown(template: Template | None) -> Any:
    if template is None:
        return None
    sizes = {"idle": template.idle, "pools_max": template.pools_max}
    return structs.asdict(template.spec) | sizes
