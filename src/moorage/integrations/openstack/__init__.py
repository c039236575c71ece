"""What all systems of OpenStack share: the way to one cloud.

`cloud.py` takes tokens and addresses from a cloud's Keystone; `cloud_error.py` is why it cannot.
May import: installed packages, and the modules beside this folder.
"""
