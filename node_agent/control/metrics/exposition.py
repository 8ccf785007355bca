"""The text format of Prometheus: families of samples with labels, bounded, escaped (docs/reference/metrics.md)."""

from typing import NamedTuple

PREFIX = "shimekiri_"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_SAMPLES = 2000  # of one family
MOST_LABEL = 200  # characters
COUNTER, GAUGE, HISTOGRAM, SUMMARY = "counter", "gauge", "histogram", "summary"


class Family(NamedTuple):
    """name: without the prefix; counters end in _total, times are in seconds, sizes in bytes. labels: beside `node`."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


class Page:
    """Samples of one agent, by family, in the order of `families`."""

    def __init__(self, node: str, families: tuple[Family, ...]) -> None:
        self.left_out = 0  # samples that were too many
        self._node = node
        self._families = {family.name: family for family in families}
        self._lines: dict[str, list[str]] = {family.name: [] for family in families}

    def add(self, name: str, value: float, *labels: str, part: str = "", le: str = "") -> None:
        """One sample. labels: values in the family's order; part: `_sum`, `_count` or `_bucket`, with its `le`."""
        family, lines = self._families[name], self._lines[name]
        if len(lines) >= MOST_SAMPLES:
            self.left_out += 1
            return
        pairs = [("node", self._node), *zip(family.labels, labels, strict=True), *((("le", le),) if le else ())]
        label_text = ",".join(f'{key}="{_escaped(text)}"' for key, text in pairs)
        lines.append(f"{PREFIX}{name}{part}{{{label_text}}} {_number(value)}\n")

    def seconds(self, name: str, ns: int, *labels: str, part: str = "") -> None:
        """A sample in seconds, of nanoseconds."""
        self.add(name, ns / 1e9, *labels, part=part)

    def text(self) -> str:
        """All of it; families without samples are left out."""
        found: list[str] = []
        for name, lines in self._lines.items():
            if lines:
                family = self._families[name]
                help_text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
                found += (f"# HELP {PREFIX}{name} {help_text}\n", f"# TYPE {PREFIX}{name} {family.kind}\n", *lines)
        return "".join(found)


def _escaped(text: str) -> str:
    escaped = text[:MOST_LABEL].encode(errors="replace").decode()
    return escaped.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))
