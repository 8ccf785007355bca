"""Trials of a release, as root and with a network: fresh Debian systems, and arm64."""
