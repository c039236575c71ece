"""Resource classes and traits: standard ones are fixed, CUSTOM_ ones are created and deleted.

Also the form of their names, and of consumer types.
Source: Placement API reference, "Resource classes", "Traits" and "Allocations".
"""

import re
from collections.abc import Iterable

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import CustomName
from moorage.core.limits import IDENTIFIER_LENGTH_MAX
from moorage.core.texts import exact, is_name

CUSTOM_PATTERN = "^CUSTOM_[A-Z0-9_]+$"
"""The pattern of the name of a custom resource class or trait, as in a JSON schema."""

_CUSTOM = re.compile(exact(CUSTOM_PATTERN))


def is_custom(name: str) -> bool:
    """May a custom class or trait have this name?"""
    return len(name) <= IDENTIFIER_LENGTH_MAX and _CUSTOM.match(name) is not None


def check_consumer_type(name: str) -> None:
    """Raise INVALID if no consumer may have this type."""
    if not is_name(name):
        raise Error(
            Code.INVALID,
            f"consumer_type must have 1 to {IDENTIFIER_LENGTH_MAX} characters of A-Z, 0-9, '_'.",
        )


def customs(names: Iterable[str]) -> set[str]:
    """Return the names that look custom: only the database knows whether they exist."""
    found = set()
    for name in names:  # a loop: a comprehension is another call, for every claim
        if name.startswith("CUSTOM_"):
            found.add(name)
    return found


def class_create(facts: Facts, now: Instant, name: str) -> tuple[Changes, CustomName]:
    """Create a custom class. Raises CLASS_EXISTS, INVALID."""
    _check_custom_class(name)
    if facts.has_class(name):
        raise Error(Code.CLASS_EXISTS, f"Conflicting resource class already exists: {name}")
    made = CustomName(name, now, now)
    return Changes(classes={name: made}), made


def class_ensure(facts: Facts, now: Instant, name: str) -> tuple[Changes, bool]:
    """Create a custom class unless it exists; return whether it was created. Raises INVALID."""
    _check_custom_class(name)
    if facts.has_class(name):
        return Changes(), False
    return Changes(classes={name: CustomName(name, now, now)}), True


def class_rename(facts: Facts, now: Instant, old: str, new: str) -> tuple[Changes, CustomName]:
    """Rename a custom class everywhere. An equal name changes nothing.

    Raises STANDARD_CLASS, CLASS_NOT_FOUND, CLASS_EXISTS, INVALID, CLASS_MANAGED: agents would
    report the old name again, so what is there would be sold under both names.
    """
    if old in facts.standard_classes:
        raise Error(Code.STANDARD_CLASS, f"Cannot update standard resource class {old}")
    before = facts.classes.get(old)
    if before is None:
        raise _class_not_found(old)
    _check_custom_class(new)
    if new == old:
        return Changes(), before
    if facts.has_class(new):
        raise Error(Code.CLASS_EXISTS, f"Resource class already exists: {new}")
    if old in facts.managed_classes:
        raise Error(
            Code.CLASS_MANAGED,
            f"Cannot rename resource class {old}: agents report it for their machines. Let them"
            " register the new class, and delete this one once it is no longer used.",
        )
    renamed = CustomName(new, before.created_at, now)
    return Changes(classes={old: None, new: renamed}, renamed_classes={old: new}), renamed


def class_delete(facts: Facts, name: str) -> Changes:
    """Remove a custom class. Raises STANDARD_CLASS, CLASS_NOT_FOUND, CLASS_IN_USE."""
    if name in facts.standard_classes:
        raise Error(
            Code.STANDARD_CLASS,
            f"Cannot delete standard resource class {name}.",
        )
    if name not in facts.classes:
        raise _class_not_found(name)
    if facts.class_uses[name]:
        raise Error(
            Code.CLASS_IN_USE,
            f"Cannot delete resource class {name}. Class is in use in inventory.",
        )
    return Changes(classes={name: None})


def trait_ensure(facts: Facts, now: Instant, name: str) -> tuple[Changes, tuple[CustomName, bool]]:
    """Create a custom trait unless it exists; return it, and whether it is new. Raises INVALID."""
    if not is_custom(name):
        raise Error(
            Code.INVALID,
            "The trait is invalid. A valid trait must be no longer than 255 characters, start "
            'with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"',
        )
    known = facts.traits.get(name)
    if known is not None:
        return Changes(), (known, False)
    made = CustomName(name, now, now)
    return Changes(traits={name: made}), (made, True)


def trait_delete(facts: Facts, name: str) -> Changes:
    """Remove a custom trait. Raises STANDARD_TRAIT, TRAIT_NOT_FOUND, TRAIT_IN_USE."""
    if name in facts.standard_traits:
        raise Error(Code.STANDARD_TRAIT, f"Cannot delete standard trait {name}.")
    if name not in facts.traits:
        raise Error(Code.TRAIT_NOT_FOUND, f"No such trait(s): {name}.")
    if facts.trait_uses[name]:
        raise Error(Code.TRAIT_IN_USE, f"The trait {name} is in use by a resource provider.")
    return Changes(traits={name: None})


def _check_custom_class(name: str) -> None:
    if not is_custom(name):
        raise Error(Code.INVALID, f"'{name}' does not match '{CUSTOM_PATTERN}'")


def _class_not_found(name: str) -> Error:
    return Error(Code.CLASS_NOT_FOUND, f"No such resource class {name}.")
