"""The site of the documentation, as `make docs` builds it."""
