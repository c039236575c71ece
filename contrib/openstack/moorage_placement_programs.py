"""The programs are in `moorage.cli.openstack`; this distribution only gives them their names."""
