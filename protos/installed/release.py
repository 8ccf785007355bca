"""Which release of Shimekiri is installed, as `--version` tells."""

import sys

from protos.installed.metadata import version

NAME = "shimekiri"


def said(command: str) -> str:
    """One line: the command, the release, the Python that runs it."""
    release = version(NAME) or "of no release"  # run from its sources
    return f"{command} {release} (Shimekiri, Python {sys.version.split()[0]})"
