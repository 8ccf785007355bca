"""python -m coordinator.nodes DIR: a directory with all that brings a query to two nodes, to be made one's own."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "two_nodes"
OWN = ("query.yaml", "cluster.yaml", "operators.py", "feed.jsonl", "inventory.yaml")
MACHINERY = ("agents.yaml", "remove.yaml", "layout.yaml", "answers.py", "shimekiri-agent@.service")
SCHEMA = re.compile(r"^(# yaml-language-server: \$schema=)(\S+)$", re.MULTILINE)
HELP = """examples:
  python -m coordinator.nodes two_pis           makes the directory, which must not have any of these files
  python -m coordinator.nodes two_pis --again   after an upgrade: the playbooks and the unit anew, the rest stays

The files of the example are yours to change; the playbooks and the unit are taken from here again with --again.
"""


def main(arguments: list[str] | None = None) -> int:
    """Exit codes: 0 done; 2 something is in the way; 1 cannot be written."""
    parser = argparse.ArgumentParser(
        prog="python -m coordinator.nodes",
        description="Writes a query for two nodes, and what installs agents there.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument(
        "--again", action="store_true", help="only the playbooks and the unit, over those that are there"
    )
    parsed = parser.parse_args(arguments)
    sources = [HERE / name for name in MACHINERY] + ([] if parsed.again else [EXAMPLE / name for name in OWN])
    try:
        taken = [name for each in sources if (parsed.directory / (name := each.name)).exists()]
        if taken and not parsed.again:
            return _say(f"{parsed.directory / taken[0]}: is there already; name another directory, or give --again", 2)
        parsed.directory.mkdir(parents=True, exist_ok=True)
        for source in sources:
            _copy(source, parsed.directory / source.name)
    except OSError as error:
        return _say(f"{error.filename or parsed.directory}: cannot be written: {error.strerror or error}", 1)
    print(f"written to {parsed.directory.resolve()}: {', '.join(each.name for each in sources)}")
    return 0


def _copy(source: Path, target: Path) -> None:
    """Files for people name their schema by the place where it is installed, so that an editor finds it from anywhere.
    As a URL: editors read up to the first space, and a path may have one."""
    if source.suffix != ".yaml" or source.parent != EXAMPLE:
        shutil.copyfile(source, target)
        return
    text = source.read_text(encoding="utf-8")
    target.write_text(
        SCHEMA.sub(lambda found: found[1] + (EXAMPLE / found[2]).resolve().as_uri(), text), encoding="utf-8"
    )


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
