"""First: what each run is, whether its records can be trusted, and a sentence with a verdict per output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from coordinator.report import missed_share
from coordinator.report.page.elements import Shown, bullets, dot, folded
from coordinator.report.page.run_labels import brief
from coordinator.report.page.verdict_sentences import BADGES, ORDER, overall, sentence, state
from coordinator.report.report_document import Query
from coordinator.units import counted

AT_ONCE = 10  # sentences; more of them are folded


def head(runs: Sequence[Shown]) -> str:
    """Above all sections."""
    queries = sorted({shown.run.plan.query for shown in runs})
    parts = [f"<h1>{escape(', '.join(queries))}: which deadlines were met</h1>"]
    for shown in runs:
        parts += [_about(shown), _doubts(shown), f'<p class="lead">{overall(shown.report)}</p>']
        if len(runs) > 1:
            parts.append(folded("A sentence per output", _verdicts(shown, linked=False), opened=len(runs) <= 3))
        else:
            parts.append(_verdicts(shown, linked=True))
        parts.append(_queries(shown))
    return "".join(parts)


def _about(shown: Shown) -> str:
    run = shown.run
    time = "virtual time" if run.virtual else "real time"
    after = f" after {', '.join(each[:8] for each in run.earlier)}" if run.earlier else ""
    about = f"{run.name}, plan {run.plan.hash[:8]}{after}, {time}, {brief(shown.series.length_ns)}"
    text = f"{dot(shown.number)}<b>{escape(shown.name)}</b> <span class=soft>{escape(about)}</span>"
    scene = shown.report.verdict
    if isinstance(scene, Mapping) and "outcome" in scene:
        kind = "good" if scene["outcome"] == "AVOIDED" else "bad"
        text += f' <b class="{kind}">{escape(str(scene["outcome"]))}</b>'
    return f"<p>{text}</p>"


def _doubts(shown: Shown) -> str:
    """What is lacking, and contradictions: they come before any verdict."""
    text = ""
    if lines := shown.report.lacking:
        text += f"<p class=bad>Not all that ran is here:</p>{bullets(lines)}"
    books = shown.report.conservation
    if not books.balanced:
        listed = [f"{e.node}/{e.boot}: {counted(e.times, 'time')}: {e.what}" for e in books.contradictions]
        about = f"The trace contradicts itself, {counted(books.problem_count, 'time')}"
        text += f"<p class=bad>{about}; results that it concerns count as undecidable.</p>{bullets(listed)}"
    return text


def _verdicts(shown: Shown, linked: bool) -> str:
    outputs = shown.report.outputs
    names = sorted(outputs, key=lambda name: (ORDER.index(state(outputs[name])), -_upper(shown, name)))
    text = _list(shown, names[:AT_ONCE], linked)
    rest = names[AT_ONCE:]
    if not rest:
        return text
    met = all(state(outputs[name]) == "met" for name in rest)
    about = f"{counted(len(rest), 'more output')}{', which met every deadline' if met else ''}"
    return text + folded(about, _list(shown, rest, linked))


def _upper(shown: Shown, name: str) -> float:
    share = shown.report.outputs[name].missed_of_offered
    return 0.0 if share is None else share[1]


def _list(shown: Shown, names: Sequence[str], linked: bool) -> str:
    items = []
    for name in names:
        css, word = BADGES[state(shown.report.outputs[name])]
        called = f"<code>{escape(name)}</code>"
        if linked:
            called = f'<a href="#output-{list(shown.report.outputs).index(name)}">{called}</a>'
        told = escape(sentence(shown.report, name))
        items.append(f'<li><span class="badge {css}">{word}</span><span>{called}: {told}.</span></li>')
    return f'<ul class="verdicts">{"".join(items)}</ul>'


def _queries(shown: Shown) -> str:
    """The sums over each query's outputs, where there are several queries."""
    queries = shown.report.queries
    if len(queries) < 2:
        return ""
    sums = "; ".join(f"{escape(query)} {_missed(found)}" for query, found in queries.items())
    return f"<p>Missed by query: {sums}.</p>"


def _missed(found: Query) -> str:
    share = found.missed_of_offered
    kind = "" if share is None else "bad" if missed_share.is_missed(share) else "good"
    return f'<b class="{kind}">{missed_share.text(share)}</b>'


__all__ = ["head"]
