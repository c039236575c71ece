"""The command `moorage`: parses options, prints results, chooses exit codes; no other logic.

`main.py` is the entry point, `names.py` has the names of all commands, `hints.py` knows the verbs
of other programs. `commands/` has one file per
command, `support/` the code that they share. `openstack/` has programs with names of OpenStack's.
May import everything but faces.
"""
