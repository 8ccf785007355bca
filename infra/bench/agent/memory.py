"""`make memory`: the memory of a lone agent by process and kind, as in docs/explanation/runtime.md.

It counts pages, as root. A page of several processes of the agent is divided among them, and other programs that have
it do not count. PSS counts those as well: beside other Pythons an agent has less of the interpreter.
"""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import iter_unpack

from infra.bench.agent.process import Agent, agent, deploy_hop, send_paced

OBJECTS, OWN, FORKED = "objects of Python", "objects of Python, its own", "objects shared since the fork"
FILES = (  # by words in the path of what is mapped; the first that fits
    ("the interpreter", ("libpython", "/python3")),
    ("protobuf", ("_upb", "libstdc++")),
    ("OpenSSL", ("libssl", "libcrypto")),
    ("gRPC", ("cygrpc",)),
    ("the trace ring", ("/shimekiri",)),
)
OTHER = "other libraries"
PAGE_BYTES, FRAME, PRESENT, KERNEL = 4096, (1 << 55) - 1, 1 << 63, 1 << 47

Pages = Mapping[int, str]
"""What a process has in memory: the kinds of its pages, by their numbers in the machine."""
Parts = dict[str, float]
"""MB, by kind."""


def kind_of(path: str) -> str:
    """Of a mapping, by its path."""
    if not path or path.startswith("["):
        return OBJECTS
    return next((kind for kind, words in FILES if any(word in path for word in words)), OTHER)


def pages(pid: int) -> Pages:
    """Of one process. Empty where this user may not know."""
    return dict(_pages(pid))


def _pages(pid: int) -> Iterator[tuple[int, str]]:
    with Path(f"/proc/{pid}/pagemap").open("rb") as numbers:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            words = line.split(maxsplit=5)
            begin, end = (int(each, 16) for each in words[0].split("-"))
            if end > KERNEL:
                continue
            kind = kind_of(words[5] if len(words) > 5 else "")
            numbers.seek(begin // PAGE_BYTES * 8)
            for (entry,) in iter_unpack("<Q", numbers.read((end - begin) // PAGE_BYTES * 8)):
                if entry & PRESENT and entry & FRAME:
                    yield entry & FRAME, kind


def megabytes(found: Mapping[str, Pages]) -> dict[str, Parts]:
    """By process: how much of each kind is its part."""
    holders = Counter(page for each in found.values() for page in each)
    parts: dict[str, Parts] = {name: defaultdict(float) for name in found}
    for name, each in found.items():
        for page, kind in each.items():
            of_objects = OWN if holders[page] == 1 else FORKED
            parts[name][of_objects if kind == OBJECTS else kind] += PAGE_BYTES / 1e6 / holders[page]
    return parts


def table(found: Mapping[str, Parts]) -> str:
    """Markdown: kinds of memory by process."""
    kinds = {kind: sum(each.get(kind, 0.0) for each in found.values()) for parts in found.values() for kind in parts}
    columns = {**found, "all": kinds}
    rows = [
        [kind, *(f"{each.get(kind, 0.0):.1f}" for each in columns.values())]
        for kind in sorted(kinds, key=lambda kind: -kinds[kind])
    ]
    rows.append(["**all**", *(f"**{sum(each.values()):.1f}**" for each in columns.values())])
    head = [["MB", *columns], ["---", *("---:" for _ in columns)]]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (*head, *rows))


def _named(running: Agent) -> dict[str, Pages]:
    supervisor, *children = running.pids()
    names = {pid: Path(f"/proc/{pid}/comm").read_text().split()[0] for pid in children}
    return {"supervisor": pages(supervisor)} | {name: pages(pid) for pid, name in names.items()}


def main() -> int:
    """Prints the table."""
    with agent() as running:
        deploy_hop(running)
        send_paced(running, 200)
        if os.geteuid() == 0:
            print(table(megabytes(_named(running))))
        print(f"PSS of all processes, beside the programs that run now: {running.pss_bytes() / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
