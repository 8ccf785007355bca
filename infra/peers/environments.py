"""Who is measured, and an environment for each peer with pinned packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv-peers"
INSTALL_LIMIT_S = 1800


class UnavailableError(Exception):
    """The peer cannot be had here; the text says why."""


@dataclass(frozen=True)
class Contestant:
    """system, feeder: module and words of each process. packages: pinned; none: runs in this environment."""

    name: str
    system: str
    feeder: str = "feeder"
    packages: tuple[str, ...] = ()
    java: bool = False

    @property
    def version(self) -> str:
        """Of its package."""
        return self.packages[0].partition("==")[2] if self.packages else ""

    @property
    def folder(self) -> Path:
        """Of its environment."""
        return ENVIRONMENTS / self.name.lower()

    def python(self) -> Path:
        """Its interpreter. Raises UnavailableError."""
        if not self.packages:
            return Path(sys.executable)
        if self.java and not shutil.which("java"):
            raise UnavailableError("needs Java, which is not here")
        ready, wanted = self.folder / ".ready", " ".join(self.packages)
        if not ready.exists() or ready.read_text() != wanted:
            _install(self.folder, self.packages)
            ready.write_text(wanted)
        return self.folder / "bin" / "python"


def _install(folder: Path, packages: tuple[str, ...]) -> None:
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    try:
        for command in ([sys.executable, "-m", "venv", str(folder)], pip):
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if "ERROR" in line] or ["pip failed"]
        raise UnavailableError(said[-1].removeprefix("ERROR: ")) from None
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"was not installed within {INSTALL_LIMIT_S} s") from None


CONTESTANTS = (
    Contestant("EDF", "edf_loop"),
    Contestant("EDF-drop", "edf_loop drop"),
    Contestant("Shimekiri", "ours", "ours feed"),
    Contestant("streamz", "adapters.streamz_stream", packages=("streamz==0.6.6",)),
    Contestant("bytewax", "adapters.bytewax_flow", packages=("bytewax==0.21.1",)),
    Contestant("zenoh", "adapters.zenoh_sessions", "adapters.zenoh_sessions feed", packages=("eclipse-zenoh==1.10.2",)),
    Contestant("dora", "adapters.dora_nodes", packages=("dora-rs==1.1.0", "dora-rs-cli==1.1.0")),
    Contestant("PyFlink", "adapters.flink_job", packages=("apache-flink==2.3.0",), java=True),
    Contestant("pathway", "adapters.pathway_table", packages=("pathway==0.33.0",)),
)
