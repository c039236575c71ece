"""The command `moorage`: parses options, prints answers, chooses exit codes; decides nothing.

`main.py` is the door. `serving.py`, `tokens.py`, `database.py`, `following.py`, `explaining.py` and
`settings.py` hold the commands, `administration.py` carries them out at a running server or in the
database, `output.py` prints. May import everything.
"""
