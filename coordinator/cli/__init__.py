"""The command line: `app` runs it, `commands` has one file per command, the rest is what several commands share."""
