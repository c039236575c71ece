"""The standard vocabulary: resource classes and traits that exist in an empty database.

They come from the libraries that all of OpenStack shares, and are handed into the core as data.
"""

import os_resource_classes
import os_traits

STANDARD_CLASSES_LISTED = tuple(os_resource_classes.STANDARDS)
"""Names of the standard resource classes, in the order that all of OpenStack knows them in."""

STANDARD_CLASSES = frozenset(STANDARD_CLASSES_LISTED)
"""Names of the standard resource classes."""

STANDARD_TRAITS = frozenset(os_traits.get_traits())
"""Names of the standard traits."""
