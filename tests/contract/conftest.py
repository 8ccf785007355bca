"""Tests that parse the tree may follow simulations in the same process."""

import gc
import sys

import pytest


@pytest.fixture(autouse=True, scope="module")
def _no_greenlets_left() -> None:
    """Collect what simulations have left: a greenlet that ends in the middle of `ast.parse` changes the recursion depth
    that the parser compares, and the interpreter gives up with a SystemError."""
    if "greenlet" in sys.modules:
        gc.collect()
