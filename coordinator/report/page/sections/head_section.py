"""First: what each run is, whether its records can be trusted, and a sentence with a verdict per output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from coordinator.report import missed_share
from coordinator.report.page.elements import PageRun, bullets, dot, folded
from coordinator.report.page.run_labels import brief
from coordinator.report.page.sections.miss_windows import while_away
from coordinator.report.page.verdict_sentences import BADGES, ORDER, overall, sentence, state
from coordinator.report.report_document import Query
from coordinator.units import counted

AT_ONCE = 10  # sentences; more of them are folded


def head(runs: Sequence[PageRun]) -> str:
    """Above all sections."""
    queries = sorted({page_run.run.plan.query for page_run in runs})
    parts = [f"<h1>{escape(', '.join(queries))}: which deadlines were met</h1>"]
    for page_run in runs:
        parts += [_about(page_run), _doubts(page_run), f'<p class="lead">{overall(page_run.report)}</p>']
        if len(runs) > 1:
            parts.append(folded("A sentence per output", _verdicts(page_run, linked=False), opened=len(runs) <= 3))
        else:
            parts.append(_verdicts(page_run, linked=True))
        parts.append(_queries(page_run))
    return "".join(parts)


def _about(page_run: PageRun) -> str:
    run = page_run.run
    time = "virtual time" if run.virtual else "real time"
    after = f" after {', '.join(each[:8] for each in run.earlier)}" if run.earlier else ""
    about = f"{run.name}, plan {run.plan.hash[:8]}{after}, {time}, {brief(page_run.series.length_ns)}"
    text = f"{dot(page_run.number)}<b>{escape(page_run.name)}</b> <span class=soft>{escape(about)}</span>"
    scene = page_run.report.verdict
    if isinstance(scene, Mapping) and "outcome" in scene:
        kind = "good" if scene["outcome"] == "AVOIDED" else "bad"
        text += f' <b class="{kind}">{escape(str(scene["outcome"]))}</b>'
    return f"<p>{text}</p>"


def _doubts(page_run: PageRun) -> str:
    """What is lacking, and contradictions: they come before any verdict."""
    text = ""
    if lines := page_run.report.lacking:
        text += f"<p class=bad>Not all that ran is here:</p>{bullets(lines)}"
    books = page_run.report.conservation
    if not books.balanced:
        listed = [f"{e.node}/{e.boot}: {counted(e.times, 'time')}: {e.what}" for e in books.contradictions]
        about = f"The trace contradicts itself, {counted(books.problem_count, 'time')}"
        text += f"<p class=bad>{about}; results that it concerns count as undecidable.</p>{bullets(listed)}"
    return text


def _verdicts(page_run: PageRun, linked: bool) -> str:
    outputs = page_run.report.outputs
    names = sorted(outputs, key=lambda name: (ORDER.index(state(outputs[name])), -_upper(page_run, name)))
    text = _list(page_run, names[:AT_ONCE], linked)
    rest = names[AT_ONCE:]
    if not rest:
        return text
    met = all(state(outputs[name]) == "met" for name in rest)
    about = f"{counted(len(rest), 'more output')}{', which met every deadline' if met else ''}"
    return text + folded(about, _list(page_run, rest, linked))


def _upper(page_run: PageRun, name: str) -> float:
    share = page_run.report.outputs[name].missed_of_offered
    return 0.0 if share is None else share[1]


def _list(page_run: PageRun, names: Sequence[str], linked: bool) -> str:
    items = []
    for name in names:
        css, word = BADGES[state(page_run.report.outputs[name])]
        called = f"<code>{escape(name)}</code>"
        if linked:
            called = f'<a href="#output-{list(page_run.report.outputs).index(name)}">{called}</a>'
        told = escape(sentence(page_run.report, name, while_away(page_run, name)))
        items.append(f'<li><span class="badge {css}">{word}</span><span>{called}: {told}.</span></li>')
    return f'<ul class="verdicts">{"".join(items)}</ul>'


def _queries(page_run: PageRun) -> str:
    """The sums over each query's outputs, where there are several queries."""
    queries = page_run.report.queries
    if len(queries) < 2:
        return ""
    sums = "; ".join(f"{escape(query)} {_missed(found)}" for query, found in queries.items())
    return f"<p>Missed by query: {sums}.</p>"


def _missed(found: Query) -> str:
    share = found.missed_of_offered
    kind = "" if share is None else "bad" if missed_share.is_missed(share) else "good"
    return f'<b class="{kind}">{missed_share.text(share)}</b>'


__all__ = ["head"]
