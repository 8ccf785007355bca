"""`coordinator init`: the files of a first query, ready to run."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

TEMPLATES = Path(__file__).parents[1] / "templates"
FILES = ("query.yaml", "cluster.yaml", "operators.py", "operators.json", "feed.jsonl")
TRY = "coordinator run --local"
STEPS = (
    ("coordinator validate query.yaml cluster.yaml", "are both files right?"),
    ("coordinator plan query.yaml cluster.yaml", "plan.json: who runs where, and a bound per output"),
    ("coordinator explain plan.json", "where every millisecond goes"),
    ("coordinator up cluster.yaml --any-port --operators operators.py --detach", "an agent per node, on this machine"),
    ("coordinator deploy plan.json", "on all nodes or on none"),
    ("node-agent listen verdict --from desk --timeout 3 &", "results, as they come"),
    ("node-agent feed readings feed.jsonl --to field --rate 20 --steady", "tuples in"),
    ("wait", "for the last result"),
    ("coordinator collect --plan plan.json -o steps", "stop, and fetch what every node recorded"),
    ("coordinator report steps/*-* --engine python", "which deadlines were met, and who took the time"),
    ("coordinator down", "stop the agents"),
)
COMMENTS_AT = 73
AGAIN = "node-agent operators --operators operators.py --json > operators.json"

EPILOG = """Examples:

  coordinator init pumps

  coordinator init                   (here, where nothing is yet)

  coordinator init pumps --force     (writes over what is there)"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def init(
        directory: Annotated[
            Path | None, typer.Argument(metavar="DIR", help="Made if need be. Default: here, if nothing is here.")
        ] = None,
        force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
    ) -> None:
        """Write the files of a first query that can be run at once, by 'coordinator run --local': query.yaml,
        cluster.yaml, operators.py with operators.json, and feed.jsonl. Prints the commands to go on with."""
        from coordinator.errors import bad_file

        folder = directory or Path()
        try:
            if not force:
                _refuse(folder, named=directory is not None)
            _write(folder)
        except OSError as error:
            text = f"cannot be written: {error.strerror or error}"
            raise bad_file(Path(error.filename or folder), "unwritable", text, "name another directory") from error
        typer.echo(f"written to {folder.resolve()}: {', '.join(FILES)}")
        for told, lines in (
            ("try it, all at once: plan, start agents, deploy, feed, collect, report:", [*_there(folder), TRY]),
            ("or step by step, in this order:", _commented(STEPS)),
            ("after a change of operators.py, before planning step by step, so that the planner knows of it:", [AGAIN]),
        ):
            typer.echo(f"\n{told}\n")
            for line in lines:
                typer.echo(f"  {line}")


def template(name: str) -> str:
    """The text of one of FILES. Schemas are named by the place where they are installed: an editor finds them there
    without a network, and they belong to the version that reads the files. As URLs: editors read up to the first space,
    and a path may have one."""
    from coordinator.spec.files import schema

    # What is Python carries a suffix more, so that nobody takes it for a module of this package.
    text = (TEMPLATES / (f"{name}.txt" if name.endswith(".py") else name)).read_text(encoding="utf-8")
    text = text.replace("@QUERY_SCHEMA@", schema.path("query").resolve().as_uri())
    return text.replace("@CLUSTER_SCHEMA@", schema.path("cluster").resolve().as_uri())


def _commented(commands: tuple[tuple[str, str], ...]) -> list[str]:
    width = min(COMMENTS_AT, max(len(command) for command, _ in commands))
    return [f"{command:<{width}}  # {what}" for command, what in commands]


def _there(folder: Path) -> list[str]:
    """What a shell needs that is where this command was called."""
    lines = [f"cd {shlex.quote(str(folder))}"] if folder.resolve() != Path.cwd() else []
    own = Path(sys.executable).parent
    found = (shutil.which(name) for name in ("coordinator", "node-agent", "python"))
    if any(each is None or Path(each).absolute().parent != own for each in found):
        lines.insert(0, f'export PATH={shlex.quote(str(own))}:"$PATH"')
    return lines


def _refuse(folder: Path, named: bool) -> None:
    """Raises BadInputError where something is in the way; a folder that nobody named has to be empty, but for hidden
    files such as an environment."""
    from coordinator.errors import bad_file

    for path in (folder / name for name in FILES):
        if path.exists() or path.is_symlink():
            mend = "name another directory, or write over all such files with --force"
            raise bad_file(path, "there_already", "is there already", mend)
    if not named and any(not each.name.startswith(".") for each in folder.iterdir()):
        mend = "name a directory, as in 'coordinator init pumps', or this one: 'coordinator init .'"
        raise bad_file(folder.resolve(), "not_empty", "is not empty", mend)


def _write(folder: Path) -> None:
    texts = {name: template(name) for name in FILES}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
