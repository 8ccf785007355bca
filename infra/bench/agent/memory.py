"""`make memory`: where the memory of a lone agent goes, in a table for docs/explanation/control.md.

PSS counts a page by the share of each process that has it, whatever program that is: beside other Pythons an agent has
less of the interpreter. As root the pages themselves are counted as well, which tells what it would be without them.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from struct import iter_unpack

from infra.bench.agent.process import agent, deploy_hop, send_paced

OWN, SINCE_FORK = "objects of Python, its own", "objects shared since the fork"
FILES = (  # what is mapped, by words in its path; the first that fits
    ("the interpreter", ("libpython", "/python3")),
    ("protobuf", ("_upb", "libstdc++")),
    ("OpenSSL", ("libssl", "libcrypto")),
    ("gRPC", ("cygrpc",)),
    ("the trace ring", ("/shimekiri",)),
)
OTHER = "other libraries"
MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)")
PAGE_BYTES, FRAME, PRESENT, KERNEL = 4096, (1 << 55) - 1, 1 << 63, 1 << 47

Bytes = Counter[str]
"""By kind of memory."""


def kind_of(path: str) -> str:
    """What a mapping of that path is counted as; of objects, what they are where nobody shares them."""
    if not path or path.startswith("["):
        return OWN
    return next((kind for kind, words in FILES if any(word in path for word in words)), OTHER)


def pss(lines: Iterable[str]) -> Bytes:
    """Of one process, from its smaps."""
    found, kind, shared_kb = Bytes(), OTHER, 0
    for line in lines:
        if mapping := MAPPING.match(line):
            kind = kind_of(mapping[1])
            continue
        name, _, rest = line.partition(":")
        size = int(rest.split()[0]) << 10 if rest.strip().endswith("kB") else 0
        if name == "Pss":
            found[kind] += size
        elif name in {"Private_Clean", "Private_Dirty"} and kind == OWN:
            shared_kb += size
    if OWN in found:
        found[SINCE_FORK] = found[OWN] - shared_kb
        found[OWN] = shared_kb
    return found


def frames(pid: int) -> Iterator[int]:
    """The pages that a process has in memory; none where this user may not know."""
    with Path(f"/proc/{pid}/pagemap").open("rb") as pages:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(each, 16) for each in line.split()[0].split("-"))
            if end <= KERNEL:
                pages.seek(begin // PAGE_BYTES * 8)
                entries = iter_unpack("<Q", pages.read((end - begin) // PAGE_BYTES * 8))
                yield from (entry & FRAME for (entry,) in entries if entry & PRESENT and entry & FRAME)


def table(found: Mapping[str, Bytes]) -> str:
    """Markdown: kinds of memory by process, in MB."""
    kinds = sorted({kind for each in found.values() for kind in each}, key=lambda kind: -_all(found)[kind])
    columns = {**found, "all": _all(found)}
    rows = [[kind, *(f"{each[kind] / 1e6:.1f}" for each in columns.values())] for kind in kinds]
    rows.append(["**all**", *(f"**{each.total() / 1e6:.1f}**" for each in columns.values())])
    head = [["MB of PSS", *columns], ["---", *("---:" for _ in columns)]]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (*head, *rows))


def _all(found: Mapping[str, Bytes]) -> Bytes:
    return sum(found.values(), Bytes())


def _measured(pids: Sequence[int]) -> dict[str, Bytes]:
    named = {Path(f"/proc/{pid}/comm").read_text().split()[0]: pid for pid in pids}
    return {
        {"agent": "supervisor"}.get(name, name): pss(Path(f"/proc/{pid}/smaps").read_text().splitlines())
        for name, pid in named.items()
    }


def main() -> int:
    """Prints the table."""
    with agent() as running:
        deploy_hop(running)
        send_paced(running, 200)
        pids = running.pids()
        print(table(_measured(pids)))
        alone = len({frame for pid in pids for frame in frames(pid)}) * PAGE_BYTES
    if alone:
        print(f"All pages, each once: {alone / 1e6:.1f} MB, which is its PSS where no other program has a page of it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
