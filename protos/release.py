"""Which release of Shimekiri is installed, as `--version` tells."""

import sys
from importlib.metadata import PackageNotFoundError, version

NAME = "shimekiri"


def said(command: str) -> str:
    """One line: the command, the release, the Python that runs it."""
    try:
        release = version(NAME)
    except PackageNotFoundError:  # run from its sources
        release = "of no release"
    return f"{command} {release} (Shimekiri, Python {sys.version.split()[0]})"
