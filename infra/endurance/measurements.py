"""The figures of a run, and what of them must hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rich import box
from rich.table import Table

from coordinator.report.report_document import Report
from infra.endurance.outside_measurements import Sample
from infra.endurance.run_summary import Exactness, Waiting
from protos import json_shape
from protos.json_shape import Json

RECOVERS_S = 10.0
MIB = 1 << 20
FED = ("offered", "refused", "behind_s")


@dataclass(frozen=True)
class Measured:
    """Of one run. caps: memory that each node declares; fed: by source, tuples offered and refused, and the most that
    the feeder was behind, in seconds."""

    load: float
    overload_s: float
    samples: Sequence[Sample]
    caps: Mapping[str, int]
    windows: Exactness
    repeated: int
    waiting: Waiting
    deadline_ns: int
    recovered_s: float
    report: Report
    fed: Mapping[str, tuple[int, int, float]]
    run: str

    def growth(self, node: str) -> tuple[int, int]:
        """Resident bytes of the node's runtime: at the first look, and at most."""
        seen = [each.runtime_bytes for each in self.samples if each.node == node and each.runtime_bytes]
        return seen[0], max(seen)

    def queued(self, node: str) -> int:
        """The most bytes that were queued."""
        return max(each.queue_bytes for each in self.samples if each.node == node)

    @property
    def answers_s(self) -> list[float | None]:
        """How long control took to answer, at each look; None: it did not."""
        return [each.answer_s for each in self.samples]

    def wrong(self) -> list[str]:
        """What does not hold."""
        found = []
        if self.windows.wrong or self.repeated:
            found.append(f"{self.windows.wrong} windows differ from the exact ones, {self.repeated} came twice")
        for node, cap in self.caps.items():
            first, most = self.growth(node)
            if most - first > cap:
                found.append(f"node {node} grew by {(most - first) / MIB:.0f} MiB, {cap / MIB:.0f} MiB are declared")
        if None in self.answers_s:
            found.append(f"control did not answer {self.answers_s.count(None)} times")
        if self.waiting.worst_ns > self.deadline_ns + self.waiting.unit_ns:
            found.append(f"a tuple waited {self.waiting.worst_ns / 1e6:.1f} ms under drop")
        if self.recovered_s > RECOVERS_S:
            found.append(f"{self.recovered_s:.1f} s after the overload something was still shed or late")
        admitted, accounted = self.report.conservation.admitted, self.report.conservation.accounted
        if admitted != accounted:
            found.append(f"{admitted - accounted} of {admitted} tuples are not accounted for")
        return found

    def document(self) -> Json:
        """As JSON."""
        return {
            "load": self.load,
            "overload_s": self.overload_s,
            "fed": {name: dict(zip(FED, each, strict=True)) for name, each in self.fed.items()},
            "runtime_bytes": {node: dict(zip(("first", "most"), self.growth(node), strict=True)) for node in self.caps},
            "queue_bytes": {node: self.queued(node) for node in self.caps},
            "memory_bytes": dict(self.caps),
            "control_answer_s": {"median": self.answer_s(), "worst": max(each or 0.0 for each in self.answers_s)},
            "windows": {"given": self.windows.given, "all": self.windows.all, "wrong": self.windows.wrong},
            "drop": {
                "worst_wait_ns": self.waiting.worst_ns,
                "deadline_ns": self.deadline_ns,
                "longest_unit_ns": self.waiting.unit_ns,
            },
            "recovered_s": round(self.recovered_s, 3),
            "conservation": json_shape.write(self.report.conservation),
            "outputs": json_shape.write(self.report.outputs),
            "wrong": self.wrong(),
            "run": self.run,
        }  # fmt: skip

    def answer_s(self) -> float:
        """Median of the times that control took to answer."""
        return median(each for each in self.answers_s if each is not None)


def table(figures: Measured) -> Table:
    """For people."""
    shown = Table(
        box=box.SIMPLE_HEAD, title=f"{figures.overload_s / 60:g} min at load {figures.load:g}", title_justify="left"
    )
    for heading in ("", "measured", "has to be"):
        shown.add_column(heading)
    for node, cap in figures.caps.items():
        first, most = figures.growth(node)
        shown.add_row(
            f"memory of {node}'s runtime", f"{first / MIB:.1f} MiB, at most {most / MIB:.1f} MiB",
            f"grows by at most {cap / MIB:.0f} MiB",
        )  # fmt: skip
        shown.add_row(f"queued in {node}", f"at most {figures.queued(node) / MIB:.2f} MiB", "")
    worst = max(each or 0.0 for each in figures.answers_s)
    shown.add_row("control answers in", f"{figures.answer_s() * 1e3:.0f} ms, at worst {worst * 1e3:.0f} ms", "5 s")
    windows = figures.windows
    shown.add_row("windows", f"{windows.given} of {windows.all} given, {windows.wrong} wrong", "0 wrong")
    waited, most_ns = figures.waiting.worst_ns, figures.deadline_ns + figures.waiting.unit_ns
    shown.add_row("longest wait under drop", f"{waited / 1e6:.1f} ms", f"at most {most_ns / 1e6:.1f} ms")
    shown.add_row("all well again after", f"{figures.recovered_s:.2f} s", "10 s")
    books = figures.report.conservation
    shown.add_row("tuples accounted for", f"{books.accounted} of {books.admitted}", "all")
    for name, one in figures.report.outputs.items():
        shown.add_row(f"output {name}", f"met {one.met}, late {one.late}, shed {one.shed}, lost {one.lost}", "")
    return shown
