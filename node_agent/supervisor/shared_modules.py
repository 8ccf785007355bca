"""What a runtime and control both need is loaded once, before they are forked: they have its pages in common, and are
ready sooner. None of it starts a thread or opens anything."""

from importlib import import_module

from protos.installed.deferred import defer

NEEDED = (
    "ctypes", "threading", "node_agent.host.files.plan_files", "node_agent.operators.source_code",
    "node_agent.tls.names", "node_agent.wire.plan_message",
)  # fmt: skip
UNUSED = "google.protobuf.internal.python_message"  # protobuf imports its half in Python beside the one in C, 2 MB


def load() -> None:
    """Load them."""
    defer(UNUSED)
    for name in NEEDED:
        import_module(name)
