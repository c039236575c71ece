"""Leases as blocks of Python code: `with client.lease(...)`, `async with aclient.lease(...)`.

`options.py` interprets the arguments, which `signature.py` gives to both clients. `holding.py`
acquires a lease, keeps and releases it, `asynchronous.py` does the same for asyncio, `at_exit.py`
releases what a program forgets, `around.py` knows the blocks around; `dry_run.py` has leases
without a server, `errors.py` the errors.
Acquiring and renewing are those of `moorage run`, in `run/lease/`.
"""
