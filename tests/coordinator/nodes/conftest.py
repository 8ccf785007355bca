"""The product's wheel, which playbooks install."""

from tests.infra.conftest import environment, shared, wheel

__all__ = ["environment", "shared", "wheel"]
