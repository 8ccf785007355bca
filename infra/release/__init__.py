"""Trials of a release, as root and with a network: fresh Debian systems, emulated arm64, the page for two Pis.

The systems that it tries install the product by themselves. Begin at __main__.py. fresh.py and arm64.py have the steps,
userland.py makes a system.
"""
