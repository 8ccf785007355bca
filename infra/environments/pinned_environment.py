"""An environment of its own for what the product's environment cannot hold: a folder with pinned packages."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

INSTALL_LIMIT_S = 1800


class UnavailableError(Exception):
    """It cannot be had here; the text says why."""


@dataclass(frozen=True)
class PinnedEnvironment:
    """packages: each as NAME==VERSION. What they need in turn is the newest that they allow."""

    folder: Path
    packages: tuple[str, ...]

    @property
    def interpreter(self) -> Path:
        """Where its Python is, or will be."""
        return self.folder / "bin" / "python"

    @property
    def is_ready(self) -> bool:
        """Whether these very packages are installed."""
        ready = self._ready_file
        return ready.exists() and ready.read_text() == self._wanted

    def python(self) -> Path:
        """Its interpreter; installs what is not there yet. Raises UnavailableError."""
        if not self.is_ready:
            self._install()
            self._ready_file.write_text(self._wanted)
        return self.interpreter

    @property
    def _ready_file(self) -> Path:
        return self.folder / ".ready"

    @property
    def _wanted(self) -> str:
        return " ".join(self.packages)

    def _install(self) -> None:
        pip = [str(self.interpreter), "-m", "pip", "install", "-q", "--disable-pip-version-check", *self.packages]
        try:
            for command in ([sys.executable, "-m", "venv", str(self.folder)], pip):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
        except subprocess.CalledProcessError as error:
            said = [line for line in error.stderr.splitlines() if "ERROR" in line] or ["pip failed"]
            raise UnavailableError(said[-1].removeprefix("ERROR: ")) from None
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"was not installed within {INSTALL_LIMIT_S} s") from None


__all__ = ["PinnedEnvironment", "UnavailableError"]
