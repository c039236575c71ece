"""The dataclasses of the native API, which server and client share.

`ledger.py` is about claims and bulk changes, `providers.py` about providers, `capacity.py` about
what all of them have, `usages.py` about what consumers hold, `admission.py` about pools and leases,
`slots.py` about named slots, `pools/` about what is in pools, `fleet.py` about agents,
`reporting.py` about reporters, `imports.py` about moving the ledger, `reshapes.py` about plans that
change trees, `rendezvous.py` says which of them owns a node, `changes.py` and `reporter_values.py`
are about the change stream, `admin.py` about tokens and the database, `audit.py` about audit
entries, `acting.py` about actions that are tried first, `finding.py` about what a text finds.
`operations/` has the operations of the API, whose bodies, parameters and answers these are.
`problems.py` is the shape of every refusal, `pages.py` of requests for lists; `durations.py` parses
durations, `enums.py` lists values that are one of a few, `defaults.py` defaults that others use as
well, `labels.py` labels with a meaning, `dataclass.py` what makes them work on Python 3.9. Every
field is in every response, None is `null`, and a time is text in the form of RFC 3339, UTC.
Standard library only; imports nothing.
"""
