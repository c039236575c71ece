"""The command `moorage`: parses options, prints results, chooses exit codes; decides nothing.

`main.py` is the entry point. `commands/` has one file per command, `support/` what they share. May
import everything but faces.
"""
