"""The reference of errors has the sentences that the code prints."""

from pathlib import Path

import pytest

from infra import error_sources

MODULE = """
def null(name):
    text = f"{name} has no value"
    return Mistake("null", text, "fill it in")

def unsupported(text):
    return Mistake("unsupported", text, mend="give numbers")

def single(name):
    text = f"{name} is a single value"
    return Mistake("unsupported", text, "give an array")
"""


def test_a_parameter_has_no_sentence_of_a_neighbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_text(MODULE)
    monkeypatch.setattr(error_sources, "ROOT", tmp_path)
    found = error_sources.sentences_of("package", frozenset({"null", "unsupported"}))
    assert [(place.code, place.sentence.text) for place in found] == [
        ("null", "NAME has no value"), ("unsupported", "NAME is a single value"),
    ]  # fmt: skip
