"""What holds for every test: no example is judged by how long it took, the machine is shared."""

from hypothesis import settings

settings.register_profile("shared_machine", deadline=None)
settings.load_profile("shared_machine")
