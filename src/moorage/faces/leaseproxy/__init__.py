"""The lease proxy for the scripts of CI jobs, without a ci-operator for each of them.

`app.py` is all of it. May import the service, the core and `faces/golang/`; no other face.
"""
