"""Configurations of Placement as kolla-ansible and openstack-ansible write them.

The keys are those of their templates `placement.conf.j2` of 2026.
"""

from pathlib import Path

KOLLA = """
[DEFAULT]
debug = False

log_file = /var/log/kolla/placement/placement-api.log

state_path = /var/lib/placement

[oslo_middleware]
enable_proxy_headers_parsing = true

[oslo_concurrency]
lock_path = /var/lib/placement/tmp

[placement_database]
connection = mysql+pymysql://placement:dbsecret@192.0.2.10:3306/placement
connection_recycle_time = 10
max_overflow = 1000
max_pool_size = 1
max_retries = -1

[cache]
backend = oslo_cache.memcache_pool
enabled = true
memcache_servers = 192.0.2.11:11211


[keystone_authtoken]
service_type = placement
www_authenticate_uri = http://192.0.2.10:5000
auth_url = {keystone}
auth_type = password
project_domain_id = default
user_domain_id = default
project_name = service
username = placement
password = {password}
cafile =
region_name = RegionOne

memcache_security_strategy = ENCRYPT
memcache_secret_key = cachesecret
memcached_servers = 192.0.2.11:11211
"""

OPENSTACK_ANSIBLE = """# Ansible managed

[DEFAULT]
use_journal = True

[keystone_authtoken]
auth_type = password
insecure = False
auth_url = {keystone}
www_authenticate_uri = https://cloud.example:5000
project_domain_id = default
user_domain_id = default
project_name = service
username = placement
password = {password}
region_name = RegionOne
memcached_servers = 192.0.2.11:11211
memcache_security_strategy = ENCRYPT
memcache_secret_key = cachesecret
service_token_roles_required = True
service_token_roles = service
service_type = placement

[placement_database]
connection = mysql+pymysql://placement:dbsecret@192.0.2.10:3306/placement?charset=utf8
max_overflow = 50
max_pool_size = 5
pool_timeout = 30
connection_recycle_time = 600
"""

SECRETS = ("dbsecret", "cachesecret")


def written(folder: Path, text: str, keystone: str, password: str, more: str = "") -> Path:
    """Write a configuration with this Keystone into a folder; return the file."""
    file = folder / "placement.conf"
    filled = text.replace("{keystone}", keystone).replace("{password}", password)
    file.write_text(f"{filled}{more}")
    return file
