"""The packages that the product says it needs are those that its generated code needs, and an agent checks them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from protos.installed import requirements

ROOT = Path(__file__).resolve().parents[3]
DEPENDENCIES = re.search(r"^dependencies = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
GENERATED = sorted((ROOT / "protos").glob("*_pb2*.py"))


def declared(package: str) -> str:
    assert DEPENDENCIES is not None
    match = re.search(rf'"{package}>=([\d.]+)', DEPENDENCIES[1])
    assert match is not None, f"{package} has no lower end"
    return match[1]


def test_the_lowest_packages_are_those_of_the_generated_code() -> None:
    texts = [path.read_text() for path in GENERATED]
    protobuf = {match for text in texts for match in re.findall(r"Protobuf Python Version: ([\d.]+)", text)}
    grpcio = {match for text in texts for match in re.findall(r"GRPC_GENERATED_VERSION = '([\d.]+)'", text)}
    assert (protobuf, grpcio) == ({declared("protobuf")}, {declared("grpcio")})


def pretend(folder: Path, package: str, version: str, *needs: str) -> None:
    """Metadata of a package that is found before the installed one."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {package}",
        f"Version: {version}",
        *(f"Requires-Dist: {n}" for n in needs),
    ]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


def test_what_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path, "product", "1", "grpcio>=1.81.1,<2", "protobuf>=6.33.5,<8", "psutil", 'nothing; extra == "x"')
    pretend(tmp_path, "protobuf", "6.33.1")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = requirements.unmet("product")
    assert [(each.package, each.installed) for each in found] == [("protobuf", "6.33.1")]
    assert "6.33.1 is installed, >=6.33.5,<8 is needed" in requirements.mend(found)
    assert "pip install 'protobuf>=6.33.5,<8'" in requirements.mend(found)
    assert requirements.unmet("a-product-that-is-not-there") == []


def test_an_agent_with_a_package_that_does_not_fit_says_so_in_a_line(tmp_path: Path) -> None:
    pretend(tmp_path, "shimekiri", "1", "grpcio", "protobuf>=6.33.5,<8")
    pretend(tmp_path, "protobuf", "6.33.1")
    command = [sys.executable, "-m", "node_agent", "run", "--name", "a", "--state", str(tmp_path / "state")]
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "protobuf 6.33.1 is installed, >=6.33.5,<8 is needed; run: python -m pip install" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
