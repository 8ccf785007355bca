"""Units that ran longer than their plan counts are told, with what to do; others are not."""

import json
from pathlib import Path

from coordinator.report.cost_overrun import cost_overruns, sentences
from coordinator.report.facts.reader import Run, read_run, records_of
from coordinator.report.report_document import CostOverrun
from protos import json_shape
from protos.records import RAN, Ran
from tests.coordinator.report.synthetic import DECISION_NS, Cluster, Lineage, everything, plan_document, play


def longest(run: Run) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for incarnation in run.incarnations:
        for _, record in records_of(incarnation):
            if isinstance(record, Ran):
                found.setdefault(record.unit, []).append(record.end_ns - record.start_ns)
    return found


def with_costs(path: Path, cost_ns: int) -> Run:
    """The run as if its plan had that cost for every operator; hashes are not looked at here."""
    file = path / "plan.json"
    document = json.loads(file.read_text())
    for local in document["nodes"].values():
        for operator in local.get("operators", ()):
            operator["cost_ns"] = cost_ns
    file.write_text(json.dumps(document))
    return read_run(path)


def test_units_above_their_cost_are_named(tmp_path: Path) -> None:
    path = play(everything(), 3, tuples=40).save(tmp_path / "run")
    roomy = with_costs(path, 10**12)
    ran = longest(roomy)
    assert ran and cost_overruns(roomy) == () and sentences([]) == []
    tight = with_costs(path, 1)
    told = {one.unit: one for one in cost_overruns(tight)}
    for unit, each in ran.items():
        chain = len(tight.plan.units[unit].operators)
        over = [ns for ns in each if ns * 10 > (chain + DECISION_NS) * 11]
        if len(over) * 100 > len(each):
            one = told.pop(unit)
            assert (one.instances, one.longer, one.longest_ns) == (len(each), len(over), max(over))
            assert one.counted_ns == chain + DECISION_NS
    assert not told
    found = cost_overruns(tight)
    assert tuple(json_shape.read(CostOverrun, each) for each in json_shape.write(found)) == found, "as in report.json"
    lines = sentences(found)
    assert "ran a tenth longer than the plan counts" in lines[0] and "'coordinator profile' measures" in lines[-1]


def test_an_instance_of_several_tuples_is_no_dearer_unit(tmp_path: Path) -> None:
    """Twenty instances of five tuples each, as a batching policy forms them: each takes as long as its tuples do."""
    document = plan_document(["a"], {"s": "a"}, [{"name": "o", "at": "a", "in": ["s"]}], {"out": ("o", "a", 10**9)})
    cost_ns = int(document["nodes"]["a"]["operators"][0].get("cost_ns", 0)) or 1_000_000
    cluster = Cluster(document, 0, mishaps=0, many=0)
    node = cluster.nodes[0]
    (unit,) = cluster.plan.units
    for batch in range(20):
        start_ns = batch * 10 * cost_ns
        for seq in range(5 * batch, 5 * batch + 5):
            lineage = Lineage(1, 1, seq, 0, 0, 0)
            node.write(RAN, cluster.flags, unit, lineage, 0, start_ns, start_ns + 5 * cost_ns, 10**9, 0, last=0)
    assert cost_overruns(with_costs(cluster.save(tmp_path / "run"), cost_ns)) == ()
