"""Builds the hot path of the agent as extension modules, from the same files: each .py with a .pxd beside it.

SHIMEKIRI_COMPILED=0 leaves them out, for the wheel that runs anywhere, and 1 demands them. Without the variable they
are built where Cython and a compiler are here. The product is complete without them, only slower.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

WANTED = os.environ.get("SHIMEKIRI_COMPILED", "")
DIRECTIVES = {"language_level": 3, "annotation_typing": False, "binding": True}


def extensions() -> list[Extension]:
    """One for each module; none where none are wanted, or Cython is missing. Raises ImportError where they must be."""
    if WANTED == "0":
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        if WANTED == "1":
            raise
        sys.stderr.write("shimekiri: Cython is not here, so the agent runs as plain Python, slower\n")
        return []
    sources = [path.with_suffix(".py") for path in sorted(Path("node_agent").rglob("*.pxd"))]
    found = [
        Extension(".".join(path.with_suffix("").parts), [str(path)], extra_compile_args=["-g0"]) for path in sources
    ]
    made = cythonize(found, build_dir="build/cython", compiler_directives=DIRECTIVES, quiet=True, nthreads=2)
    for each in made:  # Cython makes them anew
        each.optional = WANTED != "1"
    return made


setup(ext_modules=extensions())
