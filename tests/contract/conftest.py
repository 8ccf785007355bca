"""Tests that parse the tree may follow simulations in the same process."""

import gc
import sys

import pytest


@pytest.fixture(autouse=True, scope="module")
def _no_greenlets_left(request: pytest.FixtureRequest) -> None:
    """Collect what simulations have left, before a file that parses others: a greenlet that ends in the middle of
    `ast.parse` changes the recursion depth that the parser compares, and the interpreter raises a SystemError."""
    if "greenlet" in sys.modules and hasattr(request.module, "ast"):
        gc.collect()
