"""Command lines that are read without argparse say what argparse says of them, and the others are left to it."""

from random import Random

import pytest

from node_agent.tools import cli
from node_agent.tools.run_options import OPTIONS, plainly
from tests.sampling import examples

VALUES = {str: ["a", "x y", "127.0.0.1:0", "", "é"], int: ["1", "3", "007"], float: ["1", "0.5", "1e3"]}


def by_argparse(words: list[str]) -> dict[str, object]:
    found = vars(cli.command_line().parse_args(["run", *words[words[:1] == ["run"] :]]))
    return {name: value for name, value in found.items() if name not in {"command", "version"}}


def test_plain_words_mean_the_same(seed: int) -> None:
    random, read = Random(seed), 0
    for _ in range(examples(1000, 20)):
        words = [*random.choice([[], ["run"]]), "--name", "a"]
        for option in random.choices(OPTIONS, k=random.randint(0, 6)):
            values = VALUES.get(option.of, VALUES[str])  # type: ignore[call-overload]
            words += [option.word] if option.of is None else [option.word, random.choice(values)]
        plain = plainly(words)
        if plain is not None:
            read += 1
            assert vars(plain) == by_argparse(words)
    assert read


@pytest.mark.parametrize(
    "words",
    [
        [], ["run"], ["--help"], ["-h"], ["--version"], ["operators"], ["run", "--name"], ["run", "--name", "a", "b"],
        ["--name", "a", "--cores", "many"], ["--name", "a", "--sync", "-1"], ["--name=a"], ["--nam", "a"],
        ["--name", "a", "--nothing"], ["--cores", "2"], ["--name", "a", "--help"], ["feed", "--name", "a"],
    ],
)  # fmt: skip
def test_other_words_are_left_to_argparse(words: list[str]) -> None:
    assert plainly(words) is None
