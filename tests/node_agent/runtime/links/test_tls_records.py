"""Clients with a certificate that write TLS records as no library does."""

import hmac
import socket
import ssl
import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from node_agent.client.client import Admitted, Source
from node_agent.host.clock import new_boot
from node_agent.wire import frames
from tests.node_agent.live import Agent, chain_plan, store
from tests.tls_identities import Authority

HANDSHAKE, DATA = 22, 23
BEGUN = b"\x18\x00\x00\x01"  # of "here is a new key", without its last byte


class Records:
    """A connection whose records are encrypted here: after the handshake, with the secret that OpenSSL logs."""

    def __init__(self, agent: Agent, folder: Path, log: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(folder / "ca.pem")
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        context.keylog_filename = str(log)
        self._end = context.wrap_socket(socket.create_connection(("127.0.0.1", agent.ready["data"]), 20))
        assert (self._end.cipher() or ("",))[0] == "TLS_AES_256_GCM_SHA384"
        lines = (line.split() for line in log.read_text().splitlines())
        secret = next(bytes.fromhex(words[2]) for words in lines if words[0] == "CLIENT_TRAFFIC_SECRET_0")
        self._key, self._iv = AESGCM(_expand(secret, b"key", 32)), int.from_bytes(_expand(secret, b"iv", 12), "big")
        self._sent = 0

    def send(self, kind: int, data: bytes) -> None:
        """One record of that kind."""
        head = b"\x17\x03\x03" + struct.pack("!H", len(data) + 17)
        nonce = (self._iv ^ self._sent).to_bytes(12, "big")
        self._sent += 1
        socket.socket.sendall(self._end, head + self._key.encrypt(nonce, data + bytes([kind]), head))

    def until_closed(self) -> None:
        """Read what comes."""
        self._end.settimeout(20)
        try:
            while self._end.recv(1 << 16):
                pass
        except ConnectionError:
            pass
        self._end.close()


def _expand(secret: bytes, label: bytes, length: int) -> bytes:
    """HKDF-Expand-Label of TLS 1.3, without a context, for no more than a hash's length."""
    told = b"tls13 " + label
    return hmac.digest(secret, struct.pack("!HB", length, len(told)) + told + b"\x00\x01", "sha384")[:length]


@pytest.mark.parametrize("greets", [True, False])
def test_a_message_of_tls_that_is_not_finished_ends_its_connection_only(tmp_path: Path, greets: bool) -> None:
    """OpenSSL writes nothing then: probes, acknowledgements, results, or that no hello came."""
    authority = Authority(tmp_path / "certs")
    node, client = authority.node("a"), authority.client()
    store(tmp_path / "a", chain_plan())
    with Agent(tmp_path / "a", "--tls", str(node)) as agent:
        runtime = agent.runtime()
        records = Records(agent, client, tmp_path / "keys")
        if greets:
            records.send(DATA, frames.encode_hello(frames.Hello("source:in", "elsewhere", new_boot())))
        records.send(HANDSHAKE, BEGUN)
        records.until_closed()
        with Source(agent.data, "in", tls=client, timeout=20) as source:
            assert isinstance(source.send(1), Admitted)
        assert agent.runtime() == runtime and agent.stop() == 0
    log = agent.log.read_text()
    assert "has begun a message of TLS and not finished it" in log and "Traceback" not in log
