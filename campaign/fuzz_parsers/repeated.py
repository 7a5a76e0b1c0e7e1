"""Parse one input again, and print the exception: ``python -m campaign.fuzz_parsers.repeated TARGET FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

from campaign.fuzz_parsers.targets import TARGETS

if __name__ == "__main__":
    TARGETS[sys.argv[1]](Path(sys.argv[2]).read_bytes())
