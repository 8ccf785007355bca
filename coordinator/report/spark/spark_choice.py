"""What a user says of Spark: where it runs, how, and which file system it shares."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.errors import CoordinatorError, Mistake

DEFAULTS = "spark-defaults.conf"


class SparkSettingError(CoordinatorError):
    """A setting that is none."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """master: Spark's; None: two threads here. settings: Spark's own, before all others. copy_to: a folder of a file
    system that all of Spark's processes see, as `hdfs://name/shimekiri`; None: they see the run's own."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    copy_to: str | None = None

    @property
    def local(self) -> bool:
        """Whether all of Spark is one process."""
        return self.master is None or self.master == "local" or self.master.startswith("local[")

    @property
    def made(self) -> bool:
        """Whether the user has said anything."""
        return bool(self.master or self.settings or self.copy_to)


HERE = SparkChoice()


def read_settings(given: Iterable[str]) -> dict[str, str]:
    """KEY=VALUE, as spark-submit takes them. Raises SparkSettingError."""
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            mistake = Mistake(
                "no_setting", f"--conf {text}: no setting", "write it as --conf spark.executor.memory=2g", text
            )
            raise SparkSettingError(mistake)
        found[key.strip()] = value.strip()
    return found


def defaults() -> dict[str, str]:
    """What spark-defaults.conf says, where SPARK_CONF_DIR or SPARK_HOME names a folder with one."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    try:
        lines = Path(folder or os.devnull, DEFAULTS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.replace("=", " ", 1).split(None, 1) for line in lines if line.strip() and line.strip()[0] != "#")
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
