"""`moorage pool`: limits how many jobs run at once, and at which pace they start.

`pools.py` has the commands that create, change, pause and show pools, `slots.py` those of named
slots, `templates.py` those of templates; `past.py` has `moorage pool report` and `moorage pool
history`. May import: what `commands` may.
"""

from moorage.cli.commands.pool import templates
from moorage.cli.commands.pool.pools import group

group.add_command(templates.group)

__all__ = ["group"]
