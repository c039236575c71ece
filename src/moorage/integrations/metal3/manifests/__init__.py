"""The documents that `moorage metal3 install` prints. `reading.py` fills them in."""
