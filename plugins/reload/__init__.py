"""Bundles that come, change and go on disk while a server runs: what is served follows them."""
