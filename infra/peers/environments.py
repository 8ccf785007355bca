"""Who is measured, and an environment for each peer with pinned packages."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from infra.environments.pinned_environment import PinnedEnvironment, UnavailableError

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv-peers"


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
    def environment(self) -> PinnedEnvironment:
        """Of its packages."""
        return PinnedEnvironment(ENVIRONMENTS / self.name.lower(), self.packages)

    def python(self) -> Path:
        """Its interpreter. Raises UnavailableError."""
        if not self.packages:
            return Path(sys.executable)
        if self.java and not shutil.which("java"):
            raise UnavailableError("needs Java, which is not here")
        return self.environment.python()


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
