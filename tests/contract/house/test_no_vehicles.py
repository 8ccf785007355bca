"""The agent and the coordinator serve any query: nothing in them knows what one application is about."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("node_agent", "coordinator")
WORDS = re.compile(r"vehicle|collision|\bsumo\b|\bbrake|\bcrossing\b", re.IGNORECASE)


def test_neither_the_agent_nor_the_coordinator_names_a_vehicle() -> None:
    files = [
        path for room in ROOMS for path in sorted((ROOT / room).rglob("*")) if path.suffix in {".py", ".md", ".json"}
    ]
    assert len(files) > 100
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if WORDS.search(line)
    ]
    assert not found, "\n".join(found)
