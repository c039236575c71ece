"""The words of the native API: plain dataclasses that server and client share.

`problems.py` is the shape of every refusal, `pages.py` that of questions for lists;
`administration.py` is about tokens and the database, `audit.py` about who did what, `fleet.py`
about providers, `ledger.py` about claims and bulk changes, `changes.py` about what has happened;
`enums.py` about values that are one of a few.
Every field stands in every answer, None is `null`, and a time is text in the form of RFC 3339, UTC.
Standard library only; imports nothing.
"""
