"""Run one target with Atheris: ``python -m campaign.fuzz_parsers.coverage_guided TARGET [libFuzzer's options]``."""

from __future__ import annotations

import importlib
import site
import sys

from campaign.fuzz_parsers import TOOLS

if __name__ == "__main__":
    target = sys.argv.pop(1)
    site.addsitedir(str(TOOLS))
    atheris = importlib.import_module("atheris")
    for name in [each for each in sys.modules if each.startswith(("perftrail", "campaign.fuzz_parsers."))]:
        del sys.modules[name]
    with atheris.instrument_imports(include=["perftrail"]):
        targets = importlib.import_module("campaign.fuzz_parsers.targets")
    atheris.Setup(sys.argv, targets.TARGETS[target])
    atheris.Fuzz()
