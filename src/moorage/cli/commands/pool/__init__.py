"""`moorage pool`: limits how many jobs run at once, and at which pace they start.

`pools.py` has the commands that create, change, pause and show pools, `slots.py` those of named
slots, `past.py` has `moorage pool report` and `moorage pool history`. May import: what `commands`
may.
"""

from moorage.cli.commands.pool.pools import group

__all__ = ["group"]
