"""The documents that `moorage metal3 install` prints."""
