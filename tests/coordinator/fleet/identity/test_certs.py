"""`coordinator certs`: what it makes, keeps and refuses, and that others than its maker find the certificates right."""

import errno
import json
import os
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification
from typer.testing import CliRunner, Result

from coordinator.cli.app import app, register
from coordinator.errors import BadInputError
from coordinator.fleet.identity import certificate_folder, certificates, identity
from node_agent.tls import identity as agents_identity
from tests.coordinator.wording import Wording, facts, mended, printed

WORDING = Wording("certs", "identities")
ROOT = Path(__file__).parents[4]
NOW = certificates.now()
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "pi1.local:7700"}
  b_2: {address: "[fd00::2]:7700"}
  c: {address: "127.0.0.1:7700", cores: 2}
operators: not_there_yet.json
security: mutual-tls
"""
ADDRESSES = json.dumps({"nodes": {"a": {"control": "127.0.0.1:9", "data": "127.0.0.1:9"}}, "tls": "certs/coordinator"})


def cli(*words: str) -> Result:
    """The command, in this process and this directory; an error that a user would see as a sentence is raised."""
    register()
    done = CliRunner().invoke(app, ["certs", *words], catch_exceptions=False)
    assert done.exit_code == 0
    return done


def make(folder: Path, *nodes: str, **options: Any) -> certificate_folder.Made:
    choices = {"renew": False, "new_ca": False, "now": NOW}
    return certificate_folder.make(folder, nodes, **{**choices, **options})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_command_makes_folders_and_says_which_goes_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    done = cli("cluster.yaml")
    assert done.stderr == ""
    assert "ssh pi1.local mkdir -p -m 700 shimekiri-tls && scp -p certs/a/*.pem pi1.local:shimekiri-tls/" in done.stdout
    assert "scp -p certs/b_2/*.pem [fd00::2]:shimekiri-tls/" in done.stdout and "certs/c/*" not in done.stdout
    assert "certs/ca.key stays here" in done.stdout and "a.node.shimekiri" in done.stdout
    assert {str(path.relative_to(tmp_path / "certs")): stat.filemode(path.stat().st_mode) for path in
            sorted((tmp_path / "certs").rglob("*"))} == {
        ".gitignore": "-rw-r--r--", "ca.key": "-rw-------", "ca.pem": "-rw-r--r--",
        **dict.fromkeys(("a", "b_2", "c", "coordinator", "client"), "drwx------"),
        **{f"{name}/{file}": "-rw-------" if file == "key.pem" else "-rw-r--r--"
           for name in ("a", "b_2", "c", "coordinator", "client") for file in ("ca.pem", "cert.pem", "key.pem")},
    }  # fmt: skip
    assert stat.S_IMODE((tmp_path / "certs").stat().st_mode) == 0o700
    before = contents(tmp_path / "certs")

    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace("operators:", '  d: {address: "10.0.0.4:1"}\noperators:'))
    values = json.loads(cli("cluster.yaml", "--json").stdout)
    assert not values["ca"]["new"] and [name for name, each in values["identities"].items() if each["new"]] == ["d"]
    assert {name: data for name, data in contents(tmp_path / "certs").items() if name[0] != "d"} == before


def test_a_cluster_that_does_not_use_them_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text('shimekiri: 1\nnodes: {a: {address: "127.0.0.1:7700"}}\n')
    assert "write 'security: mutual-tls' there" in cli("cluster.yaml", "-o", "keys").stderr
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    assert "write 'certificates:' there" in cli("cluster.yaml", "-o", "other").stderr
    (tmp_path / "cluster.yaml").write_text('shimekiri: 1\nnodes: {a: {address: "a:1"}, A: {address: "b:1"}}\n')
    with pytest.raises(BadInputError) as raised:
        cli("cluster.yaml")
    assert "names_differ_by_case" in [problem.mistake.code for problem in raised.value.problems]


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    code = "import sys; sys.modules['cryptography'] = None\nfrom coordinator.__main__ import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", code, "certs", "cluster.yaml"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "needs cryptography" in done.stderr and "shimekiri[coordinator]" in done.stderr


def test_openssl_and_a_second_library_find_them_right(tmp_path: Path) -> None:
    made = make(tmp_path / "certs", "a", "x" * 63, "_odd-")
    ca = tmp_path / "certs" / "ca.pem"
    for name, entry in made.identities.items():
        node = name not in ("coordinator", "client")
        for purpose, right in (("sslclient", True), ("sslserver", node)):
            words = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", str(ca)]
            words.append(str(entry.path / "cert.pem"))
            assert (subprocess.run(words, capture_output=True, check=False).returncode == 0) is right, (name, purpose)
    words = ["openssl", "verify", "-x509_strict", "-check_ss_sig", "-CAfile", str(ca), str(ca)]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0
    store = verification.Store([x509.load_pem_x509_certificate(ca.read_bytes())])
    leaf = x509.load_pem_x509_certificate((tmp_path / "certs" / "a" / "cert.pem").read_bytes())
    verifier = verification.PolicyBuilder().store(store).time(NOW)
    subject = x509.DNSName("a.node.shimekiri")
    assert verifier.build_server_verifier(subject).verify(leaf, [])[0] == leaf
    with pytest.raises(verification.VerificationError):
        verifier.build_server_verifier(x509.DNSName("b.node.shimekiri")).verify(leaf, [])


def test_the_strict_context_of_newer_pythons_takes_them(tmp_path: Path) -> None:
    """What `ssl.create_default_context` is since 3.13, at both ends."""
    made = make(tmp_path / "certs", "a")
    strict = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    for entry in made.identities.values():
        ours = ssl.create_default_context(cafile=tmp_path / "certs" / "ca.pem")
        ours.load_cert_chain(entry.path / "cert.pem", entry.path / "key.pem")
        ours.verify_flags |= strict
        theirs = agents_identity.server_context(tmp_path / "certs" / "a")
        theirs.verify_flags |= strict
        assert in_memory(ours, theirs, "a.node.shimekiri")["subjectAltName"]


def test_certificates_that_strict_verifiers_refuse_are_told_and_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    make(tmp_path / "certs", "a", "b_2", "c")
    ca = certificates.read_ca((tmp_path / "certs/ca.pem").read_bytes(), (tmp_path / "certs/ca.key").read_bytes(), NOW)
    key = serialization.load_pem_private_key((tmp_path / "certs" / "a" / "key.pem").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    old = x509.CertificateBuilder(ca.certificate.subject, name, key.public_key(), x509.random_serial_number())
    old = old.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=365))
    old = old.add_extension(x509.SubjectAlternativeName([x509.DNSName("a.node.shimekiri")]), critical=False)
    signed = old.sign(ca.key, hashes.SHA256())
    (tmp_path / "certs" / "a" / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    assert shake(tmp_path / "certs" / "a", tmp_path / "certs" / "a", "a.node.shimekiri"), "it works all the same"

    (told,) = cli("cluster.yaml").stderr.splitlines()
    assert told.startswith("certs/a: ") and "Authority Key Identifier" in told and told.endswith("with --renew")
    assert cli("cluster.yaml", "--renew").stderr == "" == cli("cluster.yaml").stderr


@pytest.mark.parametrize("lines", ["MaxProtocol = TLSv1.2", "SignatureAlgorithms = RSA+SHA256"])
def test_an_openssl_without_tls_13_is_told_in_a_line(tmp_path: Path, lines: str) -> None:
    make(tmp_path / "certs", "a")
    (tmp_path / "addresses.json").write_text(ADDRESSES)
    begin = "openssl_conf = init\n[init]\nssl_conf = ssl\n[ssl]\nsystem_default = all\n[all]\n"
    (tmp_path / "openssl.cnf").write_text(f"{begin}{lines}\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENSSL_CONF": str(tmp_path / "openssl.cnf")}
    words = [sys.executable, "-m", "coordinator", "status", "--addresses", "addresses.json"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "does no TLS 1.3 of a cluster" in done.stderr and "openssl.cnf that allows TLS 1.3" in done.stderr


def shake(server: Path, client: Path, name: str) -> dict[str, Any]:
    """A handshake in memory, verified at both ends: what the server knows of the client. Raises SSLError."""
    ours = identity.load(client).context()
    ours.check_hostname = True
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(server / "cert.pem", server / "key.pem")
    theirs.load_verify_locations(server / "ca.pem")
    theirs.verify_mode = ssl.CERT_REQUIRED
    return in_memory(ours, theirs, name)


def in_memory(ours: ssl.SSLContext, theirs: ssl.SSLContext, name: str) -> dict[str, Any]:
    """The same, with contexts."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    one, other = ours.wrap_bio(down, up, server_hostname=name), theirs.wrap_bio(up, down, server_side=True)
    for end in (one, other) * 3:  # a third time where another group is asked for
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert one.version() == "TLSv1.3"
    return dict(other.getpeercert() or {})


def test_real_handshakes_verify_chain_name_and_use(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    made = make(folder, "a", "b")
    for name in made.identities:
        seen = shake(folder / "a", folder / name, "a.node.shimekiri")
        expected = f"{name}.node.shimekiri" if name in ("a", "b") else f"{name}.shimekiri"
        assert seen["subjectAltName"] == (("DNS", expected),)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake(folder / "b", folder / "coordinator", "a.node.shimekiri")
    with pytest.raises(ssl.SSLCertVerificationError, match="unsuitable certificate purpose"):
        shake(folder / "client", folder / "coordinator", "client.shimekiri")
    make(tmp_path / "others", "a")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"local issuer|self-signed"):
        shake(tmp_path / "others" / "a", folder / "coordinator", "a.node.shimekiri")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"local issuer|self-signed"):
        shake(folder / "a", tmp_path / "others" / "coordinator", "a.node.shimekiri")


def test_a_ca_signs_no_names_of_others(tmp_path: Path) -> None:
    made = make(tmp_path / "certs", "a")
    ca, _ = certificates.new_ca(NOW)
    (tmp_path / "ca.pem").write_bytes(ca.pem)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stray")])
    stray = certificates._builder(
        ca.certificate.subject, name, ca.key.public_key(), NOW, NOW + timedelta(days=1)
    ).add_extension(x509.SubjectAlternativeName([x509.DNSName("example.org")]), critical=False)
    signed = stray.sign(ca.key, hashes.SHA256())
    (tmp_path / "stray.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    words = ["openssl", "verify", "-CAfile", str(tmp_path / "ca.pem"), str(tmp_path / "stray.pem")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "permitted subtree violation" in done.stderr
    assert made.ca_name != ca.name  # so that one is never taken for the other


def test_validity_suits_clocks_that_are_behind(tmp_path: Path) -> None:
    made = make(tmp_path / "certs", "a")
    a = made.identities["a"]
    assert NOW - a.begins == timedelta(days=5 * 365) == NOW - made.ca.begins
    assert a.ends - NOW == timedelta(days=730) and made.ca.ends - NOW == timedelta(days=3650)
    later = make(tmp_path / "certs", "a", renew=True, now=NOW + timedelta(days=3000))
    assert later.identities["a"].ends == later.ca.ends and later.identities["a"].begins == made.ca.begins
    with pytest.raises(BadInputError) as raised:
        make(tmp_path / "certs", "a", renew=True, now=NOW + timedelta(days=3651))
    (problem,) = raised.value.problems
    assert problem.mistake.code == "unusable_ca" and "ca.pem has expired" in problem.mistake.text
    assert "'--new-ca'" in problem.mistake.mend


def test_renewed_identities_are_of_the_same_ca_and_new_keys(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    make(folder, "a", "gone")
    before = contents(folder)
    made = make(folder, "a", renew=True)
    after = contents(folder)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {f"{name}/{file}" for name in ("a", "coordinator", "client") for file in ("cert.pem", "key.pem")}
    assert made.others == (folder / "gone",) and before.keys() == after.keys()


def test_a_new_ca_starts_over_and_moves_the_old_one_aside(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    make(folder, "a", "gone")
    (folder / "notes.txt").write_text("mine")
    before = {name: data for name, data in contents(folder).items() if name != "notes.txt"}
    made = make(folder, "a", new_ca=True)
    assert made.before is not None and contents(made.before) == before
    assert (folder / "notes.txt").read_text() == "mine" and not (folder / "gone").exists()
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(folder / "a", made.before / "coordinator", "a.node.shimekiri")
    assert make(folder, "a").before is None


@pytest.mark.parametrize(
    ("case", "spoil", "file", "code"),
    [
        ("no key", lambda folder: (folder / "a" / "key.pem").unlink(), "a", "unusable_identity"),
        ("a key of text", lambda folder: (folder / "a" / "key.pem").write_text("x"), "a", "unusable_identity"),
        ("a certificate of text", lambda folder: (folder / "a" / "cert.pem").write_text("x"), "a", "unusable_identity"),
        ("another's", lambda folder: (folder / "b").rename(folder / "x") and (folder / "a").rename(folder / "b"),
         "b", "unusable_identity"),
        ("no ca.key", lambda folder: (folder / "ca.key").unlink(), "ca.key", "no_ca"),
        ("no ca.pem", lambda folder: (folder / "ca.pem").unlink(), "ca.pem", "no_ca"),
        ("no CA", lambda folder: (folder / "ca.key").unlink() or (folder / "ca.pem").unlink(), "a", "no_ca"),
        ("another key", lambda folder: (folder / "ca.key").write_bytes((folder / "a" / "key.pem").read_bytes()),
         "certs", "unusable_ca"),
        ("no CA in ca.pem", lambda folder: (folder / "ca.pem").write_bytes((folder / "a" / "cert.pem").read_bytes())
         and (folder / "ca.key").write_bytes((folder / "a" / "key.pem").read_bytes()),
         "certs", "unusable_ca"),
    ],
)  # fmt: skip
def test_what_is_not_in_order_is_said_and_left_alone(
    tmp_path: Path, case: str, spoil: Callable[[Path], Any], file: str, code: str
) -> None:
    folder = tmp_path / "certs"
    make(folder, "a", "b")
    spoil(folder)
    before = contents(folder)
    with pytest.raises(BadInputError) as raised:
        make(folder, "a", "b", "c")
    assert facts(raised.value.problems[0]) == (file, 0, code, "") and mended(raised.value.problems)
    WORDING.check(case, printed(raised.value, tmp_path))
    assert contents(folder) == before


def test_identities_of_another_ca_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "certs", "a")
    make(tmp_path / "others", "a")
    (tmp_path / "others" / "a").rename(tmp_path / "certs" / "z")
    with pytest.raises(BadInputError) as raised:
        make(tmp_path / "certs", "a", "z")
    assert [facts(problem) for problem in raised.value.problems] == [("z", 0, "unusable_identity", "")]
    WORDING.check("of another CA", printed(raised.value, tmp_path))
    assert make(tmp_path / "certs", "a", "z", renew=True).identities["z"].made


@pytest.mark.parametrize("renew", [False, True])
def test_interrupted_it_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renew: bool) -> None:
    folder = tmp_path / "certs"
    make(folder, "a")
    before, issue, count = contents(folder), certificates.issue, 0

    def interrupted(*given: Any) -> certificates.Issued:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        return issue(*given)

    monkeypatch.setattr(certificates, "issue", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(folder, "a", "b", "c", renew=renew)
    assert contents(folder) == before and not list(folder.glob(".partial-*"))


def test_a_move_that_fails_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "certs"
    make(folder, "a")
    before, rename, count = contents(folder), Path.rename, 0

    def failing(path: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == 5:
            raise OSError(28, "No space left on device", str(target))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(BadInputError) as raised:
        make(folder, "a", renew=True)
    (problem,) = raised.value.problems
    assert problem.mistake.code == "unwritable" and os.strerror(errno.ENOSPC) in problem.mistake.text
    assert contents(folder) == before and not list(folder.glob(".partial-*"))


def test_keys_that_others_may_read_and_ends_that_come_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    make(tmp_path / "certs", "a", "b_2", "c", "old", now=NOW - timedelta(days=700))
    (tmp_path / "certs" / "a" / "key.pem").chmod(0o644)
    (tmp_path / "certs" / "ca.key").chmod(0o640)
    said = cli("cluster.yaml").stderr
    assert "chmod 600 certs/a/key.pem" in said and "chmod 600 certs/ca.key" in said
    assert "certs/b_2: ends on" in said and "--renew" in said and "certs/old: of no node in cluster.yaml" in said
