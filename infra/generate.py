"""Generates the code beside protos/*.proto, the scripts of node_agent/tools/completions, the lists of operators that
stand here and the reference pages that are made of code; with --check only says whether they are current."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from coordinator.spec.files import schema
from infra import command_reference, completions, error_reference, file_reference, record_reference, table_reference

ROOT = Path(__file__).resolve().parent.parent
BUILTIN = Path("coordinator/spec/builtin_operators.json")
VEHICLES = Path("sim_vehicles/queries/operators.json")
TEMPLATE = Path("coordinator/cli/templates/operators.json")


def generate(out: Path) -> None:
    """Write the messages' modules and stubs, and the service's module, under `out`/protos, and the scripts."""
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}"]
    files = sorted(str(path) for path in (ROOT / "protos").glob("*.proto"))
    subprocess.run([*protoc, f"--python_out={out}", f"--pyi_out={out}", *files], check=True)
    service = str(ROOT / "protos" / "agent.proto")
    subprocess.run([*protoc, f"--grpc_python_out={out}", service], check=True)
    (out / completions.FOLDER).mkdir(parents=True, exist_ok=True)
    for name, text in completions.scripts().items():
        (out / completions.FOLDER / name).write_text(text, encoding="utf-8")
    for path, text in _pages().items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")


def _pages() -> dict[Path, str]:
    single = {Path(each.PAGE): each.page() for each in (record_reference, table_reference)}
    several = command_reference.pages() | error_reference.files() | file_reference.pages()
    return _lists() | _schemas() | single | several


def _schemas() -> dict[Path, str]:
    return {schema.path(kind).relative_to(ROOT): schema.schema_text(kind) for kind in schema.MODELS}


def _lists() -> dict[Path, str]:
    """What agents have: built in, with the vehicles, and with the first query's operators, which are told without
    what other packages bring to this environment."""
    whole = _listed()
    builtin = {name: one for name, one in whole["operators"].items() if "." not in name}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "operators.py"
        shutil.copyfile((ROOT / TEMPLATE).with_name("operators.py.txt"), file)
        first = _listed(file)
    names = {*builtin, *(first["operators"].keys() - whole["operators"].keys())}
    first |= {
        "operators": {name: one for name, one in first["operators"].items() if name in names},
        "codecs": ["json"],
        "fields": {},
    }
    return {path: json.dumps(values, indent=1) + "\n" for path, values in (
        (BUILTIN, builtin), (VEHICLES, whole), (TEMPLATE, first),
    )}  # fmt: skip


def _listed(*files: Path) -> dict[str, Any]:
    options = [word for file in files for word in ("--operators", str(file))]
    command = [sys.executable, "-m", "node_agent", "operators", "--json", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    """Exit code 1 where --check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        generate(ROOT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        made = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        stale = [path.name for path in made if not _same(path, ROOT / path.relative_to(folder))]
    if stale:
        print(f"out of date: {', '.join(stale)}; run `make protos`", file=sys.stderr)
    return 1 if stale else 0


def _same(made: Path, kept: Path) -> bool:
    return kept.is_file() and kept.read_bytes() == made.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
