"""What keeps a plan from running says the same as the mistake that it is made of."""

from node_agent.problems import ProblemError
from node_agent.wire.plan_error import PlanError
from tests.sentences import fault

MISTAKE = ProblemError("not_loaded", "cannot be loaded", "mend it", subject="t.one", file="ops.py", line=3)


def test_a_mistake_of_the_plan_as_a_whole_stays_what_it_is() -> None:
    told = PlanError.within(MISTAKE)
    assert isinstance(told, ValueError), "who refuses what cannot be read refuses it too"
    assert (told.problem, told.code, str(told)) == (MISTAKE.problem, MISTAKE.code, str(MISTAKE))


def test_a_mistake_within_a_part_names_the_part_and_keeps_its_code_and_subject() -> None:
    told = PlanError.within(MISTAKE, "O1")
    assert str(told) == "O1: ops.py:3: cannot be loaded; mend it" and fault(told.problem) == "not_loaded t.one"
    assert fault(PlanError.within(ProblemError("too_large", "is too large"), "O1").problem) == "too_large O1"
