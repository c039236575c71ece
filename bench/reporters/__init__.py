"""Measures reports by themselves: `__main__.py` is the command. May import anything."""
