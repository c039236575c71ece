"""The standard vocabulary: resource classes and traits that exist in an empty database.

They come from the libraries that all of OpenStack shares, and are handed into the core as data.
"""

import os_resource_classes
import os_traits

STANDARD_CLASSES = frozenset(os_resource_classes.STANDARDS)
"""Names of the standard resource classes."""

STANDARD_TRAITS = frozenset(os_traits.get_traits())
"""Names of the standard traits."""
