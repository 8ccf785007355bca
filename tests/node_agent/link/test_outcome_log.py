from node_agent.link.outcomes import OutcomeLog


def test_outcomes_come_once_and_again_after_a_reconnection() -> None:
    answers = OutcomeLog()
    answers.admitted(1, 5, 100)
    answers.refused(2, "too old")
    assert answers.take() == [(1, 5, 100, None), (2, 0, 0, "too old")]
    assert answers.take() == []
    answers.admitted(3, 5, 101)
    answers.on_hello(1)
    assert [outcome[0] for outcome in answers.take()] == [2, 3]
    answers.on_hello(3)
    assert answers.take() == []
    answers.on_hello(0)
    assert [outcome[0] for outcome in answers.take(2)] == [1, 2]
    assert [outcome[0] for outcome in answers.take(2)] == [3]


def test_the_memory_of_outcomes_is_bounded() -> None:
    answers = OutcomeLog(keep=2)
    for number in (1, 2, 3):
        answers.admitted(number, 0, number)
    answers.take()
    answers.on_hello(0)
    assert [outcome[0] for outcome in answers.take()] == [2, 3]


def test_each_admission_is_promised_once_and_no_refusal() -> None:
    answers = OutcomeLog()
    answers.admitted(1, 5, 100)
    answers.admitted(2, 5, 101)
    assert [outcome[0] for outcome in answers.promise_admissions()] == [1, 2]
    answers.admitted(3, 5, 102)
    assert not answers.promised
    assert [outcome[0] for outcome in answers.promise_admissions()] == [3] and answers.promised
    answers.refused(4, "too old")
    answers.admitted(5, 5, 103)
    assert [outcome[0] for outcome in answers.promise_admissions()] == [5] and not answers.promised
    assert [outcome[0] for outcome in answers.take()] == [1, 2, 3, 4, 5] and answers.promised
    answers.on_hello(0)
    answers.admitted(6, 5, 104)
    assert [outcome[0] for outcome in answers.promise_admissions()] == [6]


def test_a_refusal_that_an_earlier_incarnation_may_not_have_told_is_decided_anew() -> None:
    answers = OutcomeLog()
    answers.recall([(4, 5, 100, None), (5, 5, 101, None), (7, 5, 102, None)])
    assert [answers.resume_after(known) for known in (3, 4, 5, 6, 7)] == [5, 5, 5, 7, 7]
    assert [number for number in range(4, 9) if answers.knows(number)] == [4, 5, 7]
    answers.on_hello(4)
    assert answers.promised
    assert [outcome[0] for outcome in answers.take()] == [5, 7]


def test_what_an_earlier_incarnation_may_have_admitted_and_forgotten_is_not_admitted_again() -> None:
    answers = OutcomeLog()
    answers.recall([(4, 5, 100, None), (5, 5, 101, None), (7, 5, 102, None)], forgotten=True)
    assert [answers.resume_after(known) for known in (0, 2, 3, 5, 6)] == [5, 5, 5, 5, 7]
    none_of_it = OutcomeLog()
    none_of_it.recall([], forgotten=True)
    assert none_of_it.resume_after(2) == 2
