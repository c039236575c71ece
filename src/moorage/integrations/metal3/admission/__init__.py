"""Admission: which writes of a BareMetalHost get our pause.

`decision.py` decides; the shipped policy has the same rule in CEL. For clusters without policies
`webhook.py` serves it over HTTPS with `certificates.py`, and `review.py` reads and answers
reviews. May import: `hosts`, `integrations`.
"""
