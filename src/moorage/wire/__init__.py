"""The words of the native API: plain dataclasses that server and client share.

`problems.py` is the shape of every refusal, `administration.py` is about tokens and the database;
every other room of the API has a module of its own here. Every field stands in every answer, None
is `null`, and a time is text in the form of RFC 3339, UTC. Standard library only; imports nothing.
"""
