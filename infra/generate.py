"""Generates the code beside protos/*.proto and the scripts of node_agent/completions; with --check only says whether
they are current."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from infra import completions

ROOT = Path(__file__).resolve().parent.parent


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
