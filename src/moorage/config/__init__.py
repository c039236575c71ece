"""The settings of the process.

`settings.py` has a field for each setting: its meaning, default and bounds; it merges the sources
and refuses settings that contradict each other. `placement_conf.py` reads the part of OpenStack
Placement's `placement.conf` that has a meaning here, `oslo_files.py` its format,
`placement_policy.py` its policy file. `addresses.py` parses hosts and networks in settings,
`prefixes.py` prefixes of paths.
"""


class ConfigError(Exception):
    """A setting is wrong; the message says which one, and what to change."""
