"""The two-phase deployment: stories, and that nothing is ever half deployed for any answers of the nodes."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import Mistake
from coordinator.fleet.deployment.two_phase import Answer, Call, Result, TwoPhase, Verb

YES = Answer(True)
NO = Answer(False, Mistake("refused_by_agent", "operator my.x is not installed"))
GONE = Answer(False, Mistake("unreachable", "cannot be reached"), answered=False)


def run(machine: TwoPhase, answers: dict[Call, list[Answer]]) -> list[Call]:
    """Answer each call with the next of its answers, YES when there is none; returns all calls."""
    calls, made = machine.begin(), []
    while calls:
        made += calls
        following = []
        for verb, node in calls:
            listed = answers.get((verb, node), [])
            following += machine.answer(verb, node, listed.pop(0) if listed else YES)
        calls = following
    return made


def test_prepare_on_all_then_commit_on_all() -> None:
    machine = TwoPhase(("a", "b"))
    assert run(machine, {}) == [(Verb.PREPARE, "a"), (Verb.PREPARE, "b"), (Verb.COMMIT, "a"), (Verb.COMMIT, "b")]
    assert machine.result is Result.COMMITTED and machine.reasons == {}


def test_one_refusal_gives_up_on_the_others() -> None:
    machine = TwoPhase(("a", "b", "c"))
    calls = run(machine, {(Verb.PREPARE, "b"): [NO]})
    assert calls[3:] == [(Verb.ABORT, "a"), (Verb.ABORT, "c")]
    assert machine.result is Result.ABORTED and machine.reasons == {"b": NO.why}


def test_a_node_that_does_not_answer_is_told_to_give_up_as_well() -> None:
    machine = TwoPhase(("a", "b"))
    calls = run(machine, {(Verb.PREPARE, "b"): [GONE], (Verb.ABORT, "b"): [GONE]})
    assert calls[2:] == [(Verb.ABORT, "a"), (Verb.ABORT, "b")]
    assert machine.reasons == {"b": GONE.why}, "what went wrong first is what the user has to hear"


def test_a_refusal_everywhere_needs_no_abort() -> None:
    machine = TwoPhase(("a",))
    assert run(machine, {(Verb.PREPARE, "a"): [NO]}) == [(Verb.PREPARE, "a")]
    assert machine.result is Result.ABORTED


def test_after_the_decision_a_silent_node_is_asked_again_and_nothing_is_aborted() -> None:
    machine = TwoPhase(("a", "b"))
    calls = run(machine, {(Verb.COMMIT, "b"): [GONE, GONE]})
    assert calls[-2:] == [(Verb.COMMIT, "b")] * 2 and machine.result is Result.COMMITTED
    machine = TwoPhase(("a", "b"))
    calls = run(machine, {(Verb.COMMIT, "b"): [GONE] * 9})
    assert machine.result is Result.DECIDED and machine.reasons == {"b": GONE.why}
    assert not any(verb is Verb.ABORT for verb, _ in calls)


def test_an_abort_that_does_not_arrive_is_said() -> None:
    machine = TwoPhase(("a", "b"))
    run(machine, {(Verb.PREPARE, "b"): [NO], (Verb.ABORT, "a"): [GONE]})
    assert machine.reasons["a"].code == "unreachable" and "give up" in machine.reasons["a"].text


def test_answers_that_were_not_asked_for_change_nothing() -> None:
    machine = TwoPhase(("a",))
    assert machine.answer(Verb.COMMIT, "a", YES) == []
    machine.begin()
    machine.answer(Verb.PREPARE, "a", YES)
    assert machine.answer(Verb.PREPARE, "a", NO) == [] and machine.result is None


@given(st.data())
def test_commit_only_when_all_prepared_and_never_abort_after_it(data: st.DataObject) -> None:
    nodes = tuple("abcd"[: data.draw(st.integers(1, 4))])
    machine = TwoPhase(nodes)
    calls, prepared, committed, aborted = list(machine.begin()), set[str](), False, False
    for _ in range(100):
        if not calls:
            break
        verb, node = calls.pop(data.draw(st.integers(0, len(calls) - 1)))
        answer = data.draw(st.sampled_from([YES, YES, YES, NO, GONE]))
        if verb is Verb.PREPARE and answer.accepted:
            prepared.add(node)
        if verb is Verb.COMMIT:
            committed = True
            assert prepared == set(nodes)
        aborted |= verb is Verb.ABORT
        assert not (committed and aborted)
        calls += machine.answer(verb, node, answer)
    assert not calls
    assert machine.result in ((Result.COMMITTED, Result.DECIDED) if committed else (Result.ABORTED,))
    assert (machine.result is Result.COMMITTED) == (not machine.reasons)
