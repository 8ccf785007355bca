"""What `coordinator plan` ends with, and how soon it says that nothing can be guaranteed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from coordinator.error_codes import Code
from coordinator.errors import InfeasibleError
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.solve import planner
from tests.command_line import Said, run
from tests.coordinator.wording import Wording, named, printed

CHAIN = 40
FREE = "".join(f"  f{i}: {{run: pass, in: {f'f{i - 1}' if i else 's'}, cost: 1 ms}}\n" for i in range(CHAIN))


def files(
    folder: Path, operators: str, *, deadline: str, last: str, age: str = "5 ms", burst: int = 1, latency: str = "1 ms"
) -> tuple[Path, Path]:
    """A query from node a to node c of three."""
    query, cluster = folder / "query.yaml", folder / "cluster.yaml"
    query.write_text(
        "shimekiri: 1\nquery: q\nsources:\n"
        f"  s: {{at: a, type: json, arrival: {{burst: {burst}, period: 5 s}}, max_age: {age}}}\n"
        f"operators:\n{operators}outputs: {{o: {{from: {last}, at: c, deadline: {deadline}}}}}\n"
    )
    nodes = "".join(f'  {name}: {{address: "127.0.0.1:77{i}0"}}\n' for i, name in enumerate("abc"))
    links = "".join(f"  - {{between: [{pair}], latency: {latency}}}\n" for pair in ("a, b", "a, c", "b, c"))
    cluster.write_text(f"shimekiri: 1\nnodes:\n{nodes}links:\n{links}security: insecure-loopback\n")
    return query, cluster


def coordinator(folder: Path, *arguments: object) -> Said:
    return run(folder, shlex.join(["coordinator", *map(str, arguments)]))


WINDOW = "  w: {run: aggregate, in: s, cost: 1 ms, with: {n: count}, window: {time: 1 s%s}}\n"


@pytest.mark.parametrize(
    ("operators", "given", "code", "subject"),
    [
        (FREE, {"last": "f39", "deadline": "40 ms"}, "tuple_beyond_deadline", "o"),
        (FREE, {"last": "f39", "deadline": "60 ms", "latency": "30 ms"}, "tuple_beyond_deadline", "o"),
        (FREE, {"last": "f39", "deadline": "45 ms"}, "tuple_beyond_deadline", "o"),
        (FREE, {"last": "f39", "deadline": "5 ms"}, "age_beyond_deadline", "o"),
        (FREE, {"last": "f39", "deadline": "60 ms", "burst": 30}, "burst_beyond_deadline", "f0"),
        (WINDOW % "", {"last": "w", "deadline": "55 ms"}, "tuple_beyond_deadline", "o"),
        (WINDOW % ", deadline: first", {"last": "w", "deadline": "1010 ms"}, "tuple_beyond_deadline", "o"),
    ],
)  # fmt: skip
def test_what_is_plainly_impossible_is_told_without_a_search(
    tmp_path: Path, operators: str, given: dict[str, object], code: Code, subject: str
) -> None:
    query, cluster = files(tmp_path, operators, **given)  # type: ignore[arg-type]
    with pytest.raises(InfeasibleError) as refused:  # a search would be out of time at once
        planner.make_plan(query, cluster, Choices(limits=Limits(seconds=1e-9)))
    assert named(refused.value.reasons) == [(code, subject)]
    case = " ".join(map(str, given.values()))
    Wording("plan", "impossible").check(case, printed(refused.value, tmp_path))


ONE = "  f: {run: pass, in: s, cost: 1 ms}\n"
EVER = (("max_age: 5 ms", "tolerance: 1 ms"),)  # tuples of any age come in


@pytest.mark.parametrize(
    ("deadline", "edits", "options", "code", "written"),
    [
        ("50 ms", (), (), 0, True),
        ("6 ms", (), (), 3, False),
        ("6 ms", (), ("--best-effort",), 0, True),
        ("50 ms", EVER, (), 4, True),
        ("50 ms", EVER, ("--best-effort",), 0, True),
        ("50 ms", (), ("--policy", "fifo"), 4, True),
        ("50 ms", (), ("--policy", "fifo", "--json"), 4, True),
        ("50 ms", EVER, ("--model", "paper"), 0, True),
        ("50 ms", EVER, ("--allocator", "sqpr"), 0, True),
        ("50 ms", (), ("--what-if", "o.deadline=6 ms"), 3, False),
        ("50 ms", EVER, ("--what-if", "o.deadline=60 ms"), 4, False),
        ("50 ms", EVER, ("--what-if", "o.deadline=60 ms", "--best-effort"), 0, False),
    ],
)  # fmt: skip
def test_the_exit_code_says_what_is_guaranteed(
    tmp_path: Path,
    deadline: str,
    edits: tuple[tuple[str, str], ...],
    options: tuple[str, ...],
    code: int,
    written: bool,
) -> None:
    query, _ = files(tmp_path, ONE, deadline=deadline, last="f")
    for old, new in edits:
        query.write_text(query.read_text().replace(old, new))
    done = coordinator(tmp_path, "plan", "query.yaml", "cluster.yaml", *options)
    assert done.code == code, done.out + done.err
    assert (tmp_path / "plan.json").exists() == written
    if code == 4:
        assert "neither guaranteed nor disproven: o" in done.err and "--best-effort" in done.err
    if "--json" in options:
        assert json.loads(done.out)["guarantee"]["o"]["guaranteed"] is False
