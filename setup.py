"""Builds the hot path of the agent as extension modules, from the same files: each .py with a .pxd beside it.

SHIMEKIRI_COMPILED=0 leaves them out, for the wheel that runs anywhere, and 1 demands them. Without the variable they
are built where Cython and a compiler are here: all of them or none, since they know of each other. The product is
complete without them, only slower.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

WANTED = os.environ.get("SHIMEKIRI_COMPILED", "")
DIRECTIVES = {"language_level": 3, "annotation_typing": False, "binding": True}


def extensions() -> list[Extension]:
    """One for each module; none where none are wanted, or Cython cannot. Raises what Cython raises where they must."""
    if WANTED == "0":
        return []
    sources = [path.with_suffix(".py") for path in sorted(Path("node_agent").rglob("*.pxd"))]
    found = [
        Extension(".".join(path.with_suffix("").parts), [str(path)], extra_compile_args=["-g0"]) for path in sources
    ]
    try:
        from Cython.Build import cythonize

        return cythonize(found, build_dir="build/cython", compiler_directives=DIRECTIVES, quiet=True, nthreads=2)
    except Exception as error:
        _falls_back(error)
        return []


class AllOrNone(build_ext):
    """Where one cannot be built, none is there."""

    def run(self) -> None:
        """Raises what the compiler's run raises where they must be built."""
        try:
            super().run()
        except Exception as error:
            _falls_back(error)
            for each in self.extensions:
                Path(self.get_ext_fullpath(each.name)).unlink(missing_ok=True)
            self.extensions = []


def _falls_back(error: Exception) -> None:
    if WANTED == "1":
        raise error
    sys.stderr.write(f"shimekiri: the agent runs as plain Python, slower, since it cannot be compiled: {error}\n")


if __name__ == "__main__":  # processes of Cython read this file as well
    setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNone})
