"""A run whose records are packed by zlib, by zstd or not at all has one report, and a reader without zstd says so."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from protos.block_compression import ZLIB, Compression, cheapest
from protos.records import HEADER_BYTES, unpack_header
from protos.segments import ZSTD, Block, Chain, records_in, scan
from tests.coordinator.report.synthetic import everything, play

WITHOUT = "import sys; sys.modules['zstandard'] = None; from coordinator.__main__ import main; main()"


def packed(run: Path, way: Compression | None) -> Path:
    """The run, with all records packed that way."""
    for directory in (run / "trace" / "raw").glob("*/*"):
        files = sorted(directory.glob("*.trace"))
        chain = Chain.of(unpack_header(files[0].read_bytes()))
        for file in files:
            data = file.read_bytes()
            seals = [block for _, block in scan(data) if isinstance(block, Block) and not block.count]
            blocks = chain.add(records_in(data), 0, way)
            file.write_bytes(data[:HEADER_BYTES] + blocks + b"".join(chain.seal(block.state) for block in seals))
    return run


def flags(run: Path) -> set[int]:
    data = (file.read_bytes() for file in run.glob("trace/raw/*/*/*.trace"))
    return {block.flags for each in data for _, block in scan(each) if isinstance(block, Block) and block.deflated}


def judged(run: Path) -> Any:
    return verdict(read_run(run)).document()


def test_a_report_does_not_depend_on_how_records_are_packed(tmp_path: Path) -> None:
    run = play(everything(), 1, tuples=30).save(tmp_path / "run")
    expected = judged(run)
    assert expected["conservation"]["balanced"] and not flags(run)
    for way in (ZLIB, cheapest()):
        assert judged(packed(run, way)) == expected
        assert flags(run) == {ZSTD if way.zstd else 0}
    command = [sys.executable, "-c", WITHOUT, "report", str(run), "--engine", "python"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "coordinator needs zstandard, which is not installed: pip install 'shimekiri[coordinator]'" in done.stderr
