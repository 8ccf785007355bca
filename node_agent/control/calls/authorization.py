"""Under TLS, who may call: the coordinator and nobody else."""

from collections.abc import Sequence

from node_agent.control.calls.call_errors import CallError, Code
from node_agent.tls.names import COORDINATOR, holder


def check(names: Sequence[str]) -> None:
    """names: all in the caller's certificate. Raises CallError where it is not the coordinator's."""
    if tuple(names) == (COORDINATOR,):
        return
    whose = holder(names[0]) if len(names) == 1 else "nobody"
    why = f"only the coordinator may call an agent, and this certificate is of {whose}: use certs/coordinator"
    raise CallError(Code.PERMISSION_DENIED, why)
