"""`moorage provider`: the providers of the ledger, and what operators do with them.

`providers.py` has the commands that list, show, drain and delete providers, `tree.py` prints trees,
`change.py` changes names, figures, traits and aggregates. May import: what `commands` may.
"""

from moorage.cli.commands.provider.providers import group

__all__ = ["group"]
