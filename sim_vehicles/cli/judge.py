"""`sim-vehicles judge`: completes a run by what its traces say: where the deciding time went, and a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim_vehicles.cli.exit_code import ended_by

if TYPE_CHECKING:
    from sim_vehicles.closed_loop.closed_loop import Verdict
    from sim_vehicles.closed_loop.recorded import DrivenScene
    from sim_vehicles.replay.replay_document import ReplaySummary
    from sim_vehicles.story.timeline.run_trace import RunTrace

EXAMPLES = """Completes a replay's run directory from its traces, after `coordinator collect`.

RUN holds replay.json, plan.json and trace/. The latency of the tuple that decided each lap is split into its stages,
in replay.json; scene.html shows the scene, the brake, and what the nodes did. `replay --virtual --out` does the same
at its end. What `replay` has told already is said again with --verbose.

Examples:

  sim-vehicles replay crossing_50 --to run/addresses.json --out run

  coordinator collect --addresses run/addresses.json --plan run/plan.json -o runs

  cp run/replay.json runs/20260101T120000Z-1a2b3c4d/

  sim-vehicles judge runs/20260101T120000Z-1a2b3c4d

Exit codes: 0 done, with any verdict; 2 bad input; 1 anything else.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(help=EXAMPLES)(judge)


def judge(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory with replay.json and collected traces.")],
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="The whole account, as `replay` tells it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as one JSON object.")] = False,
) -> None:
    """Judges a collected run again and writes the verdict into its directory."""
    import json

    from rich.console import Console

    from sim_vehicles.cli.summary_report import split, tell
    from sim_vehicles.closed_loop.recorded import write_verdict

    told = Console(stderr=True, highlight=False)
    with ended_by(told):
        what = complete(run)
        said = told if as_json else Console(highlight=False)
        if verbose:
            tell(said, what)
        elif what.verdict is not None and (times := split(what.verdict)) is not None:
            said.print(times)
        missing = {lap.found.deciding.split_missing for lap in what.laps if lap.found.deciding is not None}
        for why in sorted(why for why in missing if why is not None):
            told.print(f"not split: {why}", markup=False, soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(write_verdict(what.verdict), indent=1, ensure_ascii=False))
    else:
        told.print(f"page: {run / 'scene.html'}", markup=False, soft_wrap=True)


def complete(run: Path) -> ReplaySummary:
    """Writes the split of every lap's deciding tuple into RUN/replay.json (or, as `split_missing`, why there is none)
    and RUN/scene.html; returns what it has now. BadInputError where something is not there."""
    from sim_vehicles.errors import bad_input
    from sim_vehicles.replay.replay_document import read_replay
    from sim_vehicles.replay.replay_summary import write_summary
    from sim_vehicles.story.page.scene_html import write as write_page
    from sim_vehicles.story.timeline.run_trace import plan_of, read_trace

    if not run.is_dir():
        raise bad_input("no_directory", "is no directory", "name a run, as `coordinator collect` writes it", file=run)
    path = run / "replay.json"
    what = read_replay(path)
    if what.verdict is None:
        raise bad_input("nothing_to_judge", f"nothing to judge: {what.not_judged or 'it has no verdict'}", file=path)
    if not (run / "trace").is_dir():
        raise bad_input(
            "no_traces",
            "holds no traces",
            "`coordinator collect` makes a directory with them: copy replay.json there",
            file=run,
        )
    plan_of(run, what.head.plan_hash)
    trace = read_trace(run)
    verdict = _traced(trace, what.verdict, what.scene)
    what = replace(what, verdict=verdict, laps=tuple(_traced(trace, lap, what.scene) for lap in what.laps))
    write_summary(run, what)
    write_page([run], run)
    return what


def _traced(trace: RunTrace, verdict: Verdict, scene: DrivenScene) -> Verdict:
    """With the stages of its deciding tuple, and what was shed of the messages about the crossing vehicle."""
    from sim_vehicles.closed_loop.crossing_messages import traced

    messages = verdict.crossing_messages
    if messages is not None:
        records = [record for lineage in messages.admitted for _, record in trace.of(lineage)]
        verdict = replace(verdict, crossing_messages=traced(messages, records))
    return _split(trace, verdict, scene)


def _split(trace: RunTrace, verdict: Verdict, scene: DrivenScene) -> Verdict:
    """With the stages of its deciding tuple, or why there are none."""
    from sim_vehicles.closed_loop.recorded import with_split
    from sim_vehicles.story.timeline.lineage_trace import MissingRecordError
    from sim_vehicles.story.timeline.stage_times import explain_lap

    if verdict.found.deciding is None:
        return verdict
    try:
        return with_split(verdict, explain_lap(trace, verdict.found, scene.messages).stages)
    except MissingRecordError as missing:
        return with_split(verdict, None, str(missing))
