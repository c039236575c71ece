"""The standard resource classes and traits, which exist in an empty database.

They come from OpenStack's shared libraries, and are passed to the core as data.
"""

import os_resource_classes
import os_traits

STANDARD_CLASSES_LISTED = tuple(os_resource_classes.STANDARDS)
"""Names of the standard resource classes, in OpenStack's order."""

STANDARD_CLASSES = frozenset(STANDARD_CLASSES_LISTED)
"""Names of the standard resource classes."""

STANDARD_TRAITS = frozenset(os_traits.get_traits())
"""Names of the standard traits."""
