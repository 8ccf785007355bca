"""TLS with the OpenSSL that there is: which group is agreed on, and an openssl.cnf that leaves no TLS 1.3."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.node_agent.live import ROOT, Agent
from tests.tls_identities import Authority

BEGIN = "openssl_conf = init\n[init]\n"
UNUSABLE = {
    "no TLS 1.3": "ssl_conf = ssl\n[ssl]\nsystem_default = all\n[all]\nMaxProtocol = TLSv1.2\n",
    "no ciphers": "providers = given\n[given]\nbase = base\n[base]\nactivate = 1\n",
    "no ECDSA": "ssl_conf = ssl\n[ssl]\nsystem_default = all\n[all]\nSignatureAlgorithms = RSA+SHA256\n",
}
SDK = "import sys; from node_agent.client.client import Source, TlsError\n"
SDK += "try: Source('127.0.0.1:9', 'in', tls=sys.argv[1])\n"
SDK += "except TlsError as error: sys.exit(str(error))"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its identity."""
    return Authority(tmp_path_factory.mktemp("certs")).node("a")


def test_the_key_exchange_is_p_256_and_no_other(tmp_path: Path, node: Path) -> None:
    keys = ["-CAfile", str(node / "ca.pem"), "-cert", str(node / "cert.pem"), "-key", str(node / "key.pem")]
    with Agent(tmp_path / "a", "--tls", str(node)) as agent:

        def connect(*more: str) -> str:
            words = ["openssl", "s_client", "-brief", "-connect", agent.data, *keys, *more]
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
            )
            return done.stdout + done.stderr

        by_default = connect("-verify_return_error", "-x509_strict")
        assert "TLSv1.3" in by_default and "Verification: OK" in by_default
        assert any(name in by_default for name in ("prime256v1", "secp256r1")), by_default
        for slow in ("P-384", "P-521"):
            assert "handshake failure" in connect("-groups", slow)
        assert agent.stop() == 0


@pytest.mark.parametrize("cause", UNUSABLE)
def test_where_there_is_no_tls_13_it_is_said_in_a_line(tmp_path: Path, node: Path, cause: str) -> None:
    (tmp_path / "in.jsonl").write_text("1\n")
    (tmp_path / "openssl.cnf").write_text(BEGIN + UNUSABLE[cause])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENSSL_CONF": str(tmp_path / "openssl.cnf")}
    agent = [sys.executable, "-m", "node_agent"]
    commands = [
        ([*agent, "run", "--name", "a", "--tls"], 2), ([sys.executable, "-c", SDK], 1),
        ([*agent, "feed", "in", "in.jsonl", "--to", "127.0.0.1:9", "--tls"], 2),
        ([*agent, "listen", "out", "--from", "127.0.0.1:9", "--tls"], 2),
    ]  # fmt: skip
    running = [
        subprocess.Popen([*words, str(node)], cwd=tmp_path, env=environment, text=True, stderr=subprocess.PIPE)
        for words, _ in commands
    ]
    for (words, code), process in zip(commands, running, strict=True):
        said = process.communicate(timeout=120)[1]
        assert process.returncode == code and len(said.splitlines()) == 1, (words, said)
        assert "does no TLS 1.3 of a cluster" in said and "openssl.cnf that allows TLS 1.3" in said, (words, said)
