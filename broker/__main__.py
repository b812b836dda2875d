"""`python -m broker`: see `broker.command`."""

from __future__ import annotations

import sys

# Where Hypothesis is installed, kio tells it how to make values of its types, and that takes a second and a half in
# a directory that is new to it. A broker makes no such values.
sys.modules["hypothesis"] = None  # type: ignore[assignment]

from broker.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
