"""What is tried once per release, as root and with a network: fresh Debian systems, and arm64."""
