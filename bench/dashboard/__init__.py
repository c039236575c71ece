"""Measures the dashboard: first paint in a browser, what open pages cost, claims beside them.

`scene` fills a ledger, `open_pages` keeps pages open without a browser, `first_paint` runs in the
environment of the browser.
"""
