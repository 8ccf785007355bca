"""Certificates and identities, made and judged."""
