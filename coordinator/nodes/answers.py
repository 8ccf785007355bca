"""Whether an agent answers: python answers.py HOST PORT [NAME IDENTITY]. Standard library only; exit code 0 or 1.

With NAME and IDENTITY (a folder with ca.pem, cert.pem and key.pem), over TLS by the name in the node's certificate, so
that a clock before the certificate's first day or another CA is told here and not at the first deployment. An agent's
control speaks HTTP/2, which begins with a SETTINGS frame of the one who answers.
"""

import socket
import ssl
import sys
from pathlib import Path

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # and empty settings
SETTINGS = 4
PATIENCE_S = 5.0


def answers(host: str, port: int, name: str = "", identity: Path | None = None) -> str:
    """Empty where it does, else why not."""
    try:
        with socket.create_connection((host, port), PATIENCE_S) as bare:
            speaks = bare if identity is None else _context(identity).wrap_socket(bare, server_hostname=name)
            speaks.sendall(PREFACE)
            head = b""
            while len(head) < 9 and (more := speaks.recv(9 - len(head))):
                head += more
    except (OSError, ValueError) as error:
        return f"{host}:{port}: {error}"
    return "" if len(head) == 9 and head[3] == SETTINGS else f"{host}:{port}: something answers, but no agent"


def _context(identity: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=identity / "ca.pem")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(identity / "cert.pem", identity / "key.pem")
    context.set_alpn_protocols(["h2"])
    return context


if __name__ == "__main__":
    host, port, *rest = sys.argv[1:]
    why = answers(host, int(port), f"{rest[0]}.node.shimekiri", Path(rest[1])) if rest else answers(host, int(port))
    sys.exit(why or 0)
