"""Leaves out of the distribution moorage what moorage-client has; everything else is in pyproject.toml.

`packages.find` cannot exclude it: an editable installation would then lack it, too.
"""

from setuptools import setup
from setuptools.command.build_py import build_py

CLIENT = ("moorage", "moorage.client", "moorage.wire")


class WithoutClient(build_py):
    """Builds the packages of the server only."""

    def finalize_options(self) -> None:
        """Leave out the packages of moorage-client."""
        super().finalize_options()
        self.packages = [
            name
            for name in self.packages or []
            if name != CLIENT[0] and not f"{name}.".startswith(tuple(f"{one}." for one in CLIENT[1:]))
        ]


setup(cmdclass={"build_py": WithoutClient})
