"""Programs that stand in for those of OpenStack Placement, for tools that deploy the original.

`manage.py` is `placement-manage`, `status.py` is `placement-status`, `uwsgi.py` starts the server
where a tool would start uWSGI. `arguments.py` parses the options that all programs of OpenStack
have, `configuration.py` finds the configuration, `privileges.py` gives up root's privileges,
`tables.py` draws tables as the originals do. The distribution in `contrib/openstack` installs the
programs: `moorage` itself does not, so that it never overwrites the originals.
Sources: `placement.cmd` of OpenStack Placement 16, oslo.config, oslo.upgradecheck.
"""
