"""The command: python -m gorun, or gorun, of the wheel."""

import os
import sys


def main() -> None:
    path = os.path.join(os.path.dirname(__file__), "bin", "gorun")
    if not os.path.exists(path):
        sys.exit("gorun: this installation has no command: install the wheel, or build cmd/gorun")
    os.environ.setdefault("PYTHON_EXEC", sys.executable)
    os.execv(path, ["gorun"] + sys.argv[1:])


if __name__ == "__main__":
    main()
