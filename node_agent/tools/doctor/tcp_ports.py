"""Whether addresses can be listened on: tried as an agent does, and given up at once."""

import contextlib
import errno
import socket

import psutil

from node_agent.tools.doctor.software import Port


def wanted(control: tuple[str, int], data: tuple[str, int], places: int) -> dict[str, tuple[str, int]]:
    """Every address an agent would listen on, by use. A data port 0 is any, for all places."""
    named = {"control": control, "data": data}
    for place in range(1, places if data[1] else 1):
        named[f"data of place {place}"] = (data[0], data[1] + place)
    return named


def read(use: str, host: str, port: int) -> Port:
    """Listen there for a moment."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(1)
    except OSError as error:
        return Port(use, host, port, error.errno or errno.EIO, _holder(port) if port else "")
    return Port(use, host, port)


def _holder(port: int) -> str:
    """The process that listens on it; empty where this user may not see it."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            here = connection.laddr and connection.laddr.port == port
            if here and connection.status == psutil.CONN_LISTEN and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return ""
