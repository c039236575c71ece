"""Whether the clients of tickets and grants are there, as their connections show.

`presence_cases.py` are the requests that follow from it, `confirmations.py` collects what became of
the answers that contain a grant. May import: the root of `admission`, `batch`, `core`.
"""
