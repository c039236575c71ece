"""Why the original cannot be read; the message is for people, and has no secret."""


class SourceError(Exception):
    """The original's database or API cannot be read, or not as it is."""
