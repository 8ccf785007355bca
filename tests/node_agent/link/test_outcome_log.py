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
