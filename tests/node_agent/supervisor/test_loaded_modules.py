"""What the processes of an agent do not load: each module is in the memory of one of them, or of all."""

import subprocess
import sys
from pathlib import Path

import pytest

from protos.installed.deferred import defer, is_deferred
from tests.node_agent.live import Agent, chain_plan, store

ROOT = Path(__file__).parents[3]
SUPERVISOR = (
    "import sys, node_agent.__main__, node_agent.tools.agent_start, node_agent.supervisor.supervisor\n"
    "import node_agent.host.clock, node_agent.host.files.state_dir, node_agent.host.settings\n"
)
CHILD = SUPERVISOR + (
    "from node_agent.supervisor import shared_modules\n"
    "from protos.installed import requirements\n"
    "requirements.unmet(); shared_modules.load()\n"
)
RUNTIME = CHILD + "import node_agent.runtime.process\n"
CONTROL = CHILD + (
    "from node_agent.control.entry import without_openssl\n"
    "with without_openssl(): import asyncio\n"
    "import node_agent.control.grpc_server, node_agent.control.server\n"
)
ANYWHERE = ["argparse", "shutil", "ssl", "hashlib", "_hashlib", "grpc", "email", "importlib.metadata", "decimal"]
HTTP2 = ["h2", "hpack", "hyperframe"]  # of control alone
PURE = ["google.protobuf.text_format", "google.protobuf.internal.decoder"]  # protobuf's half in Python


@pytest.mark.parametrize(
    ("program", "unwanted"),
    [
        (CHILD, ["asyncio", "node_agent.core.engine", *ANYWHERE, *PURE, *HTTP2]),
        (RUNTIME, ["asyncio", "subprocess", "logging", *ANYWHERE, *PURE, *HTTP2]),
        (CONTROL, ["node_agent.core.engine", "node_agent.runtime", *ANYWHERE, *PURE]),
    ],
    ids=["supervisor", "runtime", "control"],
)
def test_a_process_loads_only_what_it_needs(program: str, unwanted: list[str]) -> None:
    code = f"{program}print(sorted(set({unwanted}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_process_of_an_agent_without_tls_has_mapped_openssl_or_grpc(tmp_path: Path) -> None:
    store(tmp_path / "a", chain_plan())
    with Agent(tmp_path / "a", "--metrics", "127.0.0.1:0") as agent:
        for pid in (agent.process.pid, *agent.children()):
            mapped = Path(f"/proc/{pid}/maps").read_text()
            assert "libpython" in mapped or "python" in mapped
            assert [word for word in ("libssl", "libcrypto", "_ssl", "_hashlib", "grpc") if word in mapped] == []
        assert agent.stop() == 0


def test_a_deferred_module_is_there_when_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rarely_used.py").write_text("answer = 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    defer("rarely_used")
    deferred = sys.modules["rarely_used"]
    import rarely_used  # type: ignore[import-not-found]

    assert rarely_used is deferred and "answer" not in vars(deferred)
    assert not hasattr(deferred, "__path__"), "nobody has used it"
    assert rarely_used.answer == 42 and sys.modules["rarely_used"] is not deferred
    assert not hasattr(rarely_used, "question")
    defer("rarely_used")
    assert sys.modules.pop("rarely_used").answer == 42, "what is loaded stays"


def test_what_is_known_of_a_deferred_module_does_not_load_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("")
    (tmp_path / "package/rarely.py").write_text("answer, question = 42, 6\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import package  # type: ignore[import-not-found]

    defer("package.rarely", answer=41)
    from package.rarely import answer  # type: ignore[import-not-found]

    assert answer == 41 and is_deferred(package.rarely), "as an import does, the package has it"
    assert package.rarely.question == 6 and package.rarely.answer == 42 and not is_deferred(package.rarely)
