"""Event stories of every policy: these arrivals, this order, these batches."""

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.papers.policies import POLICIES, policy
from node_agent.core.plan import Arrivals, Parameters, Service
from node_agent.core.policies import POLICIES as INSTALLED
from node_agent.core.policies.papers.ats import Control
from node_agent.core.policies.papers.qed import QosDeadlines
from node_agent.core.policies.policy_parts import EVERYTHING
from protos import records
from protos.policies import NAMES
from tests.node_agent.core.simulated.policy_node import Arrival, Node, Shape

MS, US = 1_000_000, 1_000


def shed(node: Node) -> list[int]:
    return [each.seq for each in records.unpack_records(node.facts.data()) if isinstance(each, records.Shed)]


def ran(node: Node) -> list[records.Ran]:
    return [each for each in records.unpack_records(node.facts.data()) if isinstance(each, records.Ran)]


def test_an_agent_has_the_policies_of_the_contract() -> None:
    assert sorted(NAMES) == sorted(INSTALLED)


def test_a_policy_is_loaded_when_something_names_it() -> None:
    """An agent that runs EDF has the modules of no other paper's policy."""
    found = "[each for each in sys.modules if each.startswith('node_agent.core.policies.papers')]"
    code = f"import sys; from node_agent.core.policies import policy; policy(sys.argv[1]); print(*{found})"
    told = {
        name: subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True).stdout
        for name in ("edf", "edf-e2e")
    }
    assert told["edf"].split() == [] and told["edf-e2e"].split()[-1] == "node_agent.core.policies.papers.edf_e2e"


def test_only_edf_claims_a_guarantee() -> None:
    assert [each.name for each in POLICIES.values() if each.guaranteed] == ["edf"]


def test_taat_is_one_tuple_per_decision_by_deadline() -> None:
    node = Node([Shape(9, 9, 1), Shape(4, 9, 1)], policy("taat"))
    node.run([Arrival(1, 0, 1), Arrival(1, 0, 1), Arrival(2, 0, 1), Arrival(2, 0, 1)])
    assert node.order == [(2, [3]), (2, [4]), (1, [1]), (1, [2])]


def test_spt_goes_by_what_units_are_declared_to_cost_until_it_has_measured_them() -> None:
    """Unit 1 is said to be cheap and is dear: once it has run it comes last."""
    node = Node([Shape(9, 99, 1), Shape(9, 99, 5)], policy("spt"))
    node.run([Arrival(1, 0, 9), Arrival(1, 1, 9), Arrival(2, 1, 5), Arrival(2, 1, 5), Arrival(1, 1, 9)])
    assert node.order == [(1, [1]), (1, [2]), (2, [3]), (2, [4]), (1, [5])]


def test_round_robin_takes_turns() -> None:
    node = Node([Shape(9, 99, 1)] * 3, policy("rr"))
    node.run([*(Arrival(1, 0, 10) for _ in range(3)), *(Arrival(3, 0, 10) for _ in range(2)), Arrival(2, 15, 10)])
    assert [unit for unit, _ in node.order] == [1, 3, 1, 2, 3, 1]


def test_muf_takes_the_least_laxity_within_the_critical_set() -> None:
    """The same deadline: the dearer unit can wait for less."""
    node = Node([Shape(100, 100, 1), Shape(100, 100, 30)], policy("muf"))
    node.run([Arrival(1, 0, 1), Arrival(2, 0, 30)])
    assert node.order == [(2, [2]), (1, [1])]


def test_muf_in_overload_prefers_units_with_short_deadlines() -> None:
    """Unit 1 (deadline 14) uses half of the CPU, unit 2 (deadline 40) 80 %: not both fit, so unit 2 gives way however
    late it is. EDF lets unit 1 miss; muf does not."""
    shapes = [Shape(14, 10**9, 5), Shape(40, 10**9, 8)]
    arrivals = [Arrival(1, 10 * i, 5) for i in range(2000)] + [Arrival(2, 10 * i, 8) for i in range(2000)]
    missed = {}
    for name in ("muf", "edf"):
        found = ran(Node(shapes, policy(name)).run(arrivals))
        missed[name] = sum(each.end_ns > each.due_ns for each in found if each.unit == 1 and each.release_ns > 10_000)
    assert missed["muf"] == 0
    assert missed["edf"] > 990


@pytest.mark.parametrize(("k", "batches"), [(1, [[1], [2, 3], [4], [5]]), (2, [[1], [2, 3, 4], [5]])])
def test_bts_takes_k_basic_batches_of_the_most_urgent_queue(k: int, batches: list[list[int]]) -> None:
    """phi 10: tuples 2 and 3 are a basic batch, 4 comes 11 after 2."""
    node = Node([Shape(1000, 1000, 1)], policy("bts", parameters=Parameters(phi_ns=10, first_k=k)))
    node.run([Arrival(1, 0, 50), Arrival(1, 10, 1), Arrival(1, 20, 1), Arrival(1, 21, 1), Arrival(1, 60, 1)])
    assert [jobs for _, jobs in node.order] == batches


def test_phi_is_the_larger_error_bound_and_else_follows_from_the_deadlines() -> None:
    def phi_ns(**given: int) -> int:
        node = Node([Shape(30 * MS, MS, 1), Shape(300 * MS, MS, 1)], policy("bts", parameters=Parameters(**given)))
        found: int = node.engine.ready.tuner.phi_ns  # type: ignore[union-attr]
        return found

    assert phi_ns(phi_ns=5, hop_phi_ns=7) == 7
    assert phi_ns(phi_ns=5, hop_phi_ns=3) == 5
    assert phi_ns() == 3 * MS
    assert phi_ns(hop_phi_ns=7) == 3 * MS  # [A] 1.3: the hop's counts where it is the larger one
    assert phi_ns(hop_phi_ns=9 * MS) == 9 * MS


def test_bts1_sheds_what_cannot_end_by_its_end_to_end_deadline() -> None:
    """Each takes 10 and the end-to-end deadline is 25 after the origin: of four at once two can be met. The
    oldest of a batch are shed."""
    arrivals = [Arrival(1, 0, 10) for _ in range(4)]
    for name, lost in (("bts", []), ("bts1", [1, 2])):
        node = Node([Shape(5, 25, 10)], policy(name, parameters=Parameters(phi_ns=100))).run(arrivals)
        assert shed(node) == lost
        assert [jobs for _, jobs in node.order] == [[each for each in (1, 2, 3, 4) if each not in lost]]


def test_where_the_head_is_overdue_the_printed_form_sheds_the_whole_batch() -> None:
    """At 50 tuple 2 (due at 31) is overdue, tuple 3 (due at 70) is not, but they share a basic batch."""
    arrivals = [Arrival(2, 0, 50), Arrival(1, 1, 5), Arrival(1, 40, 5)]
    parameters = Parameters(phi_ns=45)
    node = Node([Shape(5, 30, 5), Shape(1000, 1000, 50)], policy("bts1", parameters=parameters)).run(arrivals)
    assert shed(node) == [2, 3]


def test_complete_batches_come_before_open_ones_and_a_node_does_not_wait_for_them() -> None:
    """phi 10. At 12 unit 1's batch (from 0, due 1000) is complete, unit 2's (from 5, due 105) is open and waits, until
    nothing else is there: at 13 it runs, open as it is, with what has come by then."""
    node = Node([Shape(1000, 1000, 1), Shape(100, 1000, 1)], policy("bts", parameters=Parameters(phi_ns=10)))
    node.run([Arrival(1, 0, 12), Arrival(1, 1, 1), Arrival(2, 5, 1), Arrival(2, 12, 1)])
    assert node.order == [(1, [1]), (1, [2]), (2, [3, 4])]


def test_a_late_sub_deadline_is_no_reason_to_shed() -> None:
    node = Node([Shape(5, 1000, 10)], policy("ats1")).run([Arrival(1, 0, 10) for _ in range(4)])
    assert shed(node) == []
    assert node.engine.ready.meter.missed == 4


def test_the_decision_is_part_of_what_bts1_expects() -> None:
    """Decisions cost 20, measured at the first one: after it, 10 + 20 do not end within 25."""
    node = Node([Shape(5, 25, 10)], policy("bts1", parameters=Parameters(phi_ns=1)), decision_ns=20)
    node.run([Arrival(1, 0, 10), Arrival(1, 100, 10)])
    assert shed(node) == [2]


def test_the_printed_controller_shrinks_k_as_soon_as_anything_is_missed() -> None:
    node = Node([Shape(5, 10**9, 10)], policy("ats", parameters=Parameters(phi_ns=1, first_k=40)))
    node.run([Arrival(1, 100 * i, 10) for i in range(10)])
    assert node.engine.ready.tuner.k == 1  # type: ignore[union-attr]
    assert node.engine.ready.tuner.grown == 0  # type: ignore[union-attr]


def test_the_printed_controller_by_hand() -> None:
    """10 of 100 missed after 0 of 50: floor(0.1 + 10 x 0.1) = 1; then 10 of 200: floor(-0.05 + 0.5) = 0."""
    node = Node([Shape(5, 10**9, 10)], policy("ats", parameters=Parameters(first_k=7)))
    tuner, meter = node.engine.ready.tuner, node.engine.ready.meter
    assert tuner is not None
    seen = []
    for missed, ended in ((0, 50), (10, 100), (10, 200), (110, 300)):
        meter.missed, meter.ended = missed, ended
        tuner.ended(None, 1, 1, 1)
        seen.append(tuner.k)  # type: ignore[attr-defined]
    assert seen == [7, 6, 6, 3]  # 11/30 - 1/20 + 110/30 = 3.98 -> 3


@given(st.lists(st.tuples(st.integers(0, 2**36), st.integers(0, 2**36)), min_size=1, max_size=9))
def test_the_printed_controller_is_exact_also_beyond_64_bits(steps: list[tuple[int, int]]) -> None:
    """floor(Kp dSDMR + KI SDMR) in fractions; (missed, met) of every execution."""
    node = Node([Shape(5, 10**9, 10)], policy("ats", parameters=Parameters(first_k=7)))
    tuner, meter, before, k = node.engine.ready.tuner, node.engine.ready.meter, Fraction(0), 7
    assert isinstance(tuner, Control)
    for missed, met in steps:
        meter.missed, meter.ended = meter.missed + missed, meter.ended + missed + met
        tuner.ended(node.loaded.units[0], missed + met, 1, 1)
        ratio = Fraction(meter.missed, max(1, meter.ended))
        k, before = max(1, k - floor(ratio - before + 10 * ratio)), ratio
        assert tuner.k == k


def test_ideal_pays_nothing_and_sheds_what_cannot_be_met() -> None:
    node = Node([Shape(25, 25, 10)], policy("ideal"), decision_ns=1000).run([Arrival(1, 0, 10) for _ in range(4)])
    assert [each.end_ns for each in node.started] == [10, 20]
    assert shed(node) == [3, 4]


def test_qos_deadlines_of_a_rate_latency_curve_are_exact() -> None:
    """Theory 3, table 3: latency 3 ms, 150 per second: the first deadline is 29/3 ms, then one every 20/3 ms."""
    due = QosDeadlines((Service(3 * MS, 1000 * MS, 150),)).next_ns
    assert [due(0, False) for _ in range(4)] == [29 * MS // 3, 49 * MS // 3, 69 * MS // 3, 89 * MS // 3]
    assert due(100 * MS, True) == 100 * MS + 29 * MS // 3


def test_of_several_service_curves_the_least_deadline_counts() -> None:
    due = QosDeadlines((Service(10), Service(0, 4))).next_ns
    assert [due(0, False) for _ in range(4)] == [4, 8, 10, 10]


def test_a_first_result_within_a_time_binds_tuples_that_find_the_unit_idle() -> None:
    due = QosDeadlines((Service(90), Service(10, first=True))).next_ns
    assert [due(0, True), due(1, False), due(50, False), due(200, True)] == [10, 91, 140, 210]
    shapes = [Shape(90, 99, 5, (Service(90), Service(10, first=True))), Shape(20, 99, 5)]
    arrivals = [Arrival(1, 0, 5), Arrival(1, 0, 5), Arrival(2, 0, 5), Arrival(1, 16, 5), Arrival(2, 16, 5)]
    found = ran(Node(shapes, policy("qed")).run(arrivals))
    assert [(each.unit, each.due_ns) for each in found] == [(1, 10), (2, 20), (1, 90), (1, 26), (2, 36)]


def test_qed_orders_by_service_curves_and_writes_the_deadline_down() -> None:
    """Unit 1 is promised one tuple per 10, unit 2 a delay of 15: unit 1's second tuple is due at 20."""
    shapes = [Shape(99, 99, 1, (Service(0, 10),)), Shape(15, 99, 1)]
    node = Node(shapes, policy("qed")).run([Arrival(1, 0, 1), Arrival(1, 0, 1), Arrival(2, 0, 1)])
    assert node.order == [(1, [1]), (2, [3]), (1, [2])]
    assert [each.due_ns for each in ran(node)] == [10, 15, 20]


def test_pqed_goes_on_without_a_decision_until_another_unit_is_more_urgent() -> None:
    """Unit 1's tuples are due at 100, unit 2's at 56: it takes over when it comes, between two tuples."""
    shapes = [Shape(100, 200, 10), Shape(31, 200, 10)]
    arrivals = [*(Arrival(1, 0, 10) for _ in range(5)), Arrival(2, 25, 10)]
    node = Node(shapes, replace(policy("pqed"), asks=EVERYTHING), decision_ns=1).run(arrivals)
    assert node.order == [(1, [1]), (1, [2]), (1, [3]), (2, [6]), (1, [4]), (1, [5])]
    assert [each.decided for each in node.started] == [True, False, False, True, True, False]
    assert node.engine.ready.meter.decision_ns == 1


def test_pqed_gives_the_schedule_of_qed() -> None:
    shapes = [Shape(40, 90, 3), Shape(25, 90, 7), Shape(60, 90, 5, (Service(5, 9),))]
    arrivals = [Arrival(1 + i % 3, (i * i * 7) % 400, 3 + i % 5) for i in range(200)]
    assert Node(shapes, policy("pqed")).run(arrivals).order == Node(shapes, policy("qed")).run(arrivals).order


def test_printed_pqed_runs_the_number_of_tuples_that_its_equation_gives() -> None:
    """D - t = 50, C = 10, unit 2 demands one tuple of 10 by then (its curve: 31 - 10 after 0): Z = 4."""
    shapes = [
        Shape(40, 200, 10, arrivals=(Arrivals(90, 10),)), Shape(50, 200, 10, arrivals=(Arrivals(0, 1000),)),
    ]  # fmt: skip
    node = Node(shapes, policy("pqed-printed"))
    node.run([*(Arrival(1, 0, 10) for _ in range(8)), Arrival(2, 0, 10)])
    assert [unit for unit, _ in node.order][:5] == [1, 1, 1, 1, 1]
    assert [each.decided for each in node.started][:5] == [True, False, False, False, True]


def test_a_unit_that_is_held_is_let_go_when_its_plan_is_unloaded() -> None:
    node = Node([Shape(100, 200, 10)], policy("pqed"))
    for seq in (1, 2):
        node.engine.admit(0, node.loaded.source_routes[1], (1, 1, seq, 0, 0, 0), None, 0)
    assert node.engine.next(0) is not None
    node.engine.step(0, 10)
    node.engine.step(10, 20)
    node.engine.unload(node.loaded, 20)
    assert node.engine.ready.held is None
    assert node.engine.ready.meter.units == []
