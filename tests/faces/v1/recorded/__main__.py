"""Writes the examples of the OpenAPI description; `make openapi` runs it."""

import json

from moorage.faces.v1.openapi import EXAMPLES
from tests.faces.v1.recorded.scenario import recorded

EXAMPLES.write_text(json.dumps(recorded(), indent=1) + "\n")
