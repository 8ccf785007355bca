"""`python -m infra.bench.engine`: cost per task instance and of policies as JSON, for this Python's engine alone."""

import json
import sys
from dataclasses import asdict

from infra.bench.engine.per_instance import per_instance
from infra.bench.policies import policies


def main() -> int:
    """A list of figures on the standard output."""
    print(json.dumps([asdict(each) for each in (*per_instance(), *policies())]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
