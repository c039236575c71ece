"""Typed identifiers, one per kind, so that they cannot be mixed up."""

from typing import NewType

ProviderId = NewType("ProviderId", str)
"""A resource provider's UUID: 36 characters, lower case, with dashes."""

ConsumerId = NewType("ConsumerId", str)
"""A consumer's UUID: 36 characters, lower case, with dashes."""

AggregateId = NewType("AggregateId", str)
"""An aggregate's UUID: 36 characters, lower case, with dashes."""
