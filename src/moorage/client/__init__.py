"""What runs on other machines: talks to a Moorage server over HTTP.

`transport.py` carries requests and tells failures apart. Standard library only; never imports the
server.
"""
