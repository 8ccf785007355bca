"""`coordinator report --perfetto`: a small run to the letter, the rules of the format, counts like the ledger's."""

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from coordinator.cli.commands.report import register
from coordinator.report.facts.one_clock import OneClock
from coordinator.report.facts.reader import read_run
from coordinator.report.perfetto import chrome_file
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.synthetic import (
    MS,
    Cluster,
    Lineage,
    everything,
    plan_document,
    play,
    random_document,
)
from tests.coordinator.report.synthetic_windows import as_earlier
from tests.seeds import seeds

US = 1000
AHEAD = 5_000 * MS  # b's clock of a's
app = typer.Typer()
register(app)


@app.callback()
def _group() -> None:
    """As in the real command line, `report` is one of several."""


def report(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def refused(*arguments: object) -> str:
    """Why, of bad input."""
    done = report(*arguments)
    assert getattr(done.exception, "exit_code", done.exit_code) == 2
    return done.output + str(done.exception)


def events(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: list[dict[str, Any]] = json.loads(data)["traceEvents"]
    return found


def two_clocks() -> Cluster:
    """car@a -> first@a -> second@b -> out@b; the clock of b is 5 s ahead, and it knows that to 200 us."""
    document = plan_document(
        ["a", "b"],
        {"car": "a"},
        [{"name": "first", "at": "a", "in": ["car"]}, {"name": "second", "at": "b", "in": ["first"]}],
        {"out": ("second", "b", 20 * MS)},
    )
    cluster = Cluster(document, 1, mishaps=0)
    for node, clock in zip(cluster.all, ("one", "other"), strict=True):
        node.clock, node.ended = clock, True
        node.records.clear()
    return cluster


def hand_written() -> Cluster:
    """One tuple along that way: out late in b; a second one that is shed."""
    cluster = two_clocks()
    a, b = cluster.all
    one, hash_ = Lineage(1, 1, 1, 0, 0, 0), cluster.plan.hash_u64
    a.write(rec.PLAN, 0, rec.STATE_COMMITTED, None, 0, 3, last=hash_)
    a.write(rec.ADMITTED, 3, 1, one, 1 * MS, 0, 0)
    a.write(rec.RAN, 3, 1, one, 1 * MS, 2 * MS, 3 * MS + 1, 6 * MS, 500, last=1)
    a.write(rec.SENT, 3, 1, one, 3 * MS + 10, 1, 2, 0)
    a.write(rec.SHED, 3, 1, Lineage(1, 1, 2, 0, 0, 0), 4 * MS, rec.POLICY_LATE, 0, 0, 0)
    a.write(rec.LOAD, 0, rec.NO_REF, None, 4 * MS, 640, 2, 1 * MS, 0, last=5)
    a.write(rec.LOAD, 0, rec.NO_REF, None, 8 * MS, 0, 0, 3 * MS, 1 * MS, last=6)
    b.write(rec.PLAN, 0, rec.STATE_COMMITTED, None, AHEAD, 3, last=hash_)
    b.write(rec.CLOCK, 3, 0, None, AHEAD, AHEAD - 100 * US, AHEAD + 100 * US, 200 * US, 0)
    b.write(rec.RECEIVED, 3, 0, one, AHEAD + 4 * MS, 1, 3 * MS + 10, 2, 0)
    b.write(rec.RAN, 3, 2, one, AHEAD + 4 * MS, AHEAD + 5 * MS, AHEAD + 25 * MS, AHEAD + 9 * MS, 0, last=1)
    b.write(rec.OUTPUT, 3, 1, one, AHEAD + 25 * MS, AHEAD, AHEAD + 100 * US, 20 * MS, 0)
    return cluster


def test_a_small_run_to_the_letter(tmp_path: Path) -> None:
    run = hand_written().save(tmp_path / "run")
    done = report(run, "--perfetto", tmp_path / "out.json")
    assert done.exit_code == 0, done.output
    assert "2 task instances" in done.output and "ui.perfetto.dev" in done.output
    found = [{key: value for key, value in each.items() if key != "cname"} for each in events(tmp_path / "out.json")]
    tracks = {(1, 1): "core a", (1, 1001): "results of a", (2, 2): "core b", (2, 1002): "results of b"}
    assert {(e["pid"], e["tid"]): e["args"]["name"] for e in found if e["name"] == "thread_name"} == tracks
    first, second = {"tuple": "1/1/1.0", "source": "car"}, {"tuple": "1/1/2.0", "source": "car"}
    core_a, core_b, results = {"pid": 1, "tid": 1}, {"pid": 2, "tid": 2}, {"pid": 2, "tid": 1002}
    link = {"name": "a to b: first", "cat": "link", "id": "link 1", **core_a}
    counter = {"ph": "C", "cat": "counter", **core_a}
    assert [each for each in found if each["ph"] != "M"] == [
        {"ph": "X", "name": "first", "cat": "ran", **core_a, "ts": 2000.0, "dur": 1000.001, "args": first | {
            "release": 1000.0, "deadline": 6000.0, "wait_us": 1000.0, "slack_us": 2999.999, "outputs": 1}},
        {"ph": "s", "name": "tuple", "cat": "flow", **core_a, "ts": 2000.0, "id": "1/1/1"},
        {"ph": "i", "name": "shed: late", "cat": "shed", **core_a, "ts": 4000.0, "s": "t", "args": second | {
            "cause": "late", "unit": "first"}},
        {**counter, "name": "queue of a", "ts": 4000.0, "args": {"bytes": 640}},
        {**counter, "name": "ready on a", "ts": 4000.0, "args": {"instances": 2}},
        {"ph": "b", **link, "ts": 3000.01, "args": first | {"link_seq": 1}},
        {"ph": "e", **link, "ts": 4000.0, "args": {}},
        {**counter, "name": "queue of a", "ts": 8000.0, "args": {"bytes": 0}},
        {**counter, "name": "ready on a", "ts": 8000.0, "args": {"instances": 0}},
        {**counter, "name": "utilisation of a [%]", "ts": 8000.0, "args": {"operators": 50.0, "overhead": 25.0}},
        {"ph": "X", "name": "second", "cat": "ran", **core_b, "ts": 5000.0, "dur": 20000.0, "args": first | {
            "release": 4000.0, "deadline": 9000.0, "wait_us": 1000.0, "slack_us": -16000.0, "outputs": 1}},
        {"ph": "f", "name": "tuple", "cat": "flow", **core_b, "ts": 5000.0, "id": "1/1/1", "bp": "e"},
        {"ph": "i", "name": "out: late", "cat": "result", **results, "ts": 25000.0, "s": "t", "args": first | {
            "latency_us": [24900.0, 25000.0], "deadline_us": 20000.0, "verdict": "late"}},
        {"ph": "i", "name": "deadline of out", "cat": "deadline", **results, "ts": 20000.0, "s": "t", "args": first},
    ]  # fmt: skip


def check_format(found: list[dict[str, Any]]) -> None:
    """The rules of the format that viewers rely on."""
    named = {(e["pid"], e["tid"]) for e in found if e["ph"] == "M" and e["name"] == "thread_name"}
    processes = {e["pid"] for e in found if e["ph"] == "M" and e["name"] == "process_name"}
    slices: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    flows: dict[str, list[tuple[float, str]]] = defaultdict(list)
    links: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for event in found:
        if event["ph"] == "M":
            continue
        assert {"ph", "name", "cat", "pid", "tid", "ts"} <= set(event)
        track = event["pid"], event["tid"]
        assert track in named and event["pid"] in processes
        if event["ph"] == "X":
            assert event["dur"] >= 0
            slices[track].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] in "stf":
            assert any(since <= event["ts"] <= until for since, until in slices[track][-1:]), "the slice comes first"
            flows[event["id"]].append((event["ts"], event["ph"]))
        elif event["ph"] in "be":
            links[event["id"]].append((event["ts"], event["ph"]))
        else:
            assert event["ph"] in "iC" and (event["ph"] == "C" or event["s"] == "t")
    for steps in flows.values():
        steps.sort(key=lambda step: (step[0], "stf".index(step[1])))
        phases = "".join(phase for _, phase in steps)
        assert phases[0] == "s" and phases[-1] == "f" and set(phases[1:-1]) <= {"t"}
    for pair in links.values():
        (left, begins), (arrived, ends) = pair
        assert left <= arrived and begins + ends == "be"


@pytest.mark.parametrize("seed", [0, *seeds(range(1, 6))])
def test_events_keep_to_the_format_and_agree_with_the_ledgers(tmp_path: Path, seed: int) -> None:
    document = everything() if not seed else random_document(seed)
    path = play(document, seed, tuples=40, mishaps=0.05, policed=0.1).save(tmp_path / "run")
    run, out = read_run(path), tmp_path / "out.json.gz"
    counts = chrome_file.write(run, out, chrome_file.Part(), lambda text: None)
    found = events(out)
    check_format(found)
    told, ledger = Counter(each.get("cat") for each in found if each["ph"] not in "tfeM"), verdict(run).document()
    assert counts == told
    by_kind: Counter[str] = Counter()
    for one in run.incarnations:
        for chunk in one.chunks:
            by_kind.update(rec.KINDS[r.kind] for r in rec.unpack_records(chunk) if r.flags & 127 == 3)
    assert told["ran"] == by_kind["RAN"] and told["link"] == by_kind["RECEIVED"]
    assert told["deadline"] <= told["result"] == by_kind["OUTPUT"], "an origin may be unknown"
    assert told["shed"] == by_kind["SHED"] and told["lost"] == by_kind["LOST"]
    ends = ledger["conservation"]["by_outcome"]
    final = [each for each in found if each.get("cat") == "ran" and "goes_on_later" not in each["args"]]
    assert len(final) == ends["consumed"] + ends["filtered"]
    assert told["result"] == ends["delivered"]
    verdicts = Counter(each["args"]["verdict"] for each in found if each.get("cat") == "result")
    assert sum(verdicts.values()) >= sum(output["delivered"] for output in ledger["outputs"].values())


def test_a_part_of_a_run(tmp_path: Path) -> None:
    run = hand_written().save(tmp_path / "run")
    done = report(run, "--perfetto", tmp_path / "out.json", "--from", "4.5 ms", "--to", "30 ms", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["events"] == {"ran": 1, "result": 1, "deadline": 1, "counter": 2}
    found = events(tmp_path / "out.json")
    check_format(found)  # no arrow to what is left out
    done = report(run, "--perfetto", tmp_path / "out.json", "--first", "5", "--json")
    assert json.loads(done.stdout.strip().splitlines()[-1])["events"] == {"ran": 1}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--from", "10"], "no unit"),
        (["--from", "1 h"], "no trace records in that part"),
        (["--perfetto", "/proc/nowhere/x.json"], "cannot be written"),
        (["--perfetto", "/dev/null/x.json"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, options: list[str], why: str) -> None:
    run = hand_written().save(tmp_path / "run")
    assert why in refused(run, "--perfetto", tmp_path / "out.json", *options)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run"]
    assert "one run" in refused(run, run, "--perfetto", tmp_path / "out.json")
    assert "--perfetto FILE" in refused(run, "--first", "1").replace("\n", " ")


@pytest.mark.parametrize("earlier", [False, True])
def test_what_was_given_up_names_its_stream_and_peer_under_earlier_plans_too(tmp_path: Path, earlier: bool) -> None:
    cluster = hand_written()
    cluster.nodes[0].write(rec.GAVE_UP, 3, 1, Lineage(1, 1, 1, 0, 0, 0), 40 * MS, 1, 2, 0)
    run = cluster.save(tmp_path / "run")
    report(as_earlier(run) if earlier else run, "--perfetto", tmp_path / "out.json")
    (gave_up,) = (each for each in events(tmp_path / "out.json") if each.get("cat") == "gave_up")
    assert (gave_up["args"]["to"], gave_up["args"]["stream"]) == ("b", "first")


def test_too_much_is_refused_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = hand_written().save(tmp_path / "run")
    monkeypatch.setattr(chrome_file, "MOST_RECORDS", 5)
    assert "--first 5" in refused(run, "--perfetto", tmp_path / "out.json")
    assert report(run, "--perfetto", tmp_path / "out.json", "--first", "5").exit_code == 0


def test_offsets_between_probes_are_interpolated_and_chained(tmp_path: Path) -> None:
    cluster = two_clocks()
    run = read_run(cluster.save(tmp_path / "run"))
    one, other = run.incarnations
    clock = rec.Clock.make(at_ns=1000, offset_lo_ns=40, offset_hi_ns=60)
    later = clock.changed(at_ns=2000, offset_lo_ns=140, offset_hi_ns=160)
    found = OneClock(run, [(other, clock), (other, later)], {})
    assert [found.at("other", at) for at in (0, 1000, 1500, 2000, 3000)] == [-50, 950, 1400, 1850, 2850]
    assert found.at("one", 7) == 7 and not found.alone
    back = OneClock(run, [(one, clock.changed(peer=1))], {})
    assert back.at("other", 950) == 1000, "what a knows of b does as well"
    untold = clock.changed(offset_lo_ns=-(1 << 62), offset_hi_ns=1 << 62)
    unknown = OneClock(run, [(other, untold)], {"one": 100, "other": 5000})
    assert unknown.alone == ["other"] and unknown.at("other", 5001) == 101
