"""A double of Nova's API that answers from what its databases have at that moment.

`database.py` has the databases: that of the API, and one for each cell. `operations.py` does what
Nova does, write by write, so that tests see everything in between. `api.py` answers requests as
nova 34 does, `server.py` speaks HTTP and has the control by tests. `nova_manage.py` decides as
`nova-manage placement audit` does.
"""
