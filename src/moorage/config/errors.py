"""The error for a wrong setting."""


class ConfigError(Exception):
    """A setting is wrong. The message is one line and says what to change."""
