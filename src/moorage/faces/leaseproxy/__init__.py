"""The lease proxy for the scripts of CI jobs, without one ci-operator per job.

`app.py` contains all of it. May import the service, the core and `faces/golang/`; no other face.
"""
