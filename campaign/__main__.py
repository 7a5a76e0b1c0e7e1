"""Run campaigns and print their table: ``python -m campaign [NAME …] [--seconds N] [--seed N] [--json] [--progress]``.

Exits with 1 if a campaign found a loss.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from campaign import Result

PROMISES = {
    "power_failures": "after a power failure, the store opens and has every acknowledged sample",
    "fuzz_launcher": "no input of the launcher crashes it or has undefined behaviour",
    "fuzz_parsers": "whatever a file or a message contains, perftrail reads it or refuses it with an error of its own",
    "static_analysis": "the analysers of two compilers find nothing in the C code",
    "supply_chain": "equal sources build equal wheels; dependencies have allowed licences and no known weaknesses",
    "faults": "after a failed system call, no acknowledged sample is lost and the next command resumes",
    "kills": "after a kill at any system call, no invocation is lost or stored twice, and the answer is the same",
    "outside_root": "a hostile source, patch or backup changes nothing outside its directory, and stays in its limits",
    "hostile_clone": "nothing outside of a clone changes or is shown, whatever replaces its files; every command ends",
    "sandbox_escapes": "a program in the sandbox reaches nothing that docs/how-to/sandbox.md closes",
    "daemons": "a build that asks a process which it did not start is never taken for another revision's build",
    "stale": "an input that changed is measured again, or the documentation says that its change is not seen",
    "web": "no request makes the dashboard fail, break its schema, or serve a client without permission",
    "soak": "after 50,000 invocations, perftrail uses no more memory, and nothing is left over",
}
"""Each campaign and the promise that it tries to break, in the order of the table."""


def main() -> None:
    """Run the campaigns of the command line."""
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"by default all: {', '.join(PROMISES)}")
    parser.add_argument("--seconds", type=float, default=180.0, help="time for each campaign [default: 180]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--progress", action="store_true", help="print trials and losses as they happen")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("campaign").setLevel(logging.INFO if arguments.progress else logging.WARNING)
    if unknown := set(arguments.names) - set(PROMISES):
        parser.error(f"no campaign {', '.join(sorted(unknown))}; there are {', '.join(PROMISES)}")
    results: dict[str, Result] = {}
    for name in arguments.names or PROMISES:
        began = time.monotonic()
        results[name] = importlib.import_module(f"campaign.{name}").run(arguments.seconds, arguments.seed)
        found = results[name]
        print(
            f"{name}: {found.trials} trials, {len(found.losses)} losses, {time.monotonic() - began:.0f} s",
            file=sys.stderr,
        )
    if arguments.json:
        told = {
            name: {"trials": found.trials, "losses": found.losses, "notes": found.notes}
            for name, found in results.items()
        }
        print(json.dumps(told, indent=2))
    else:
        print(table(results))
    sys.exit(any(found.losses for found in results.values()))


def table(results: dict[str, Result]) -> str:
    """Return the table in Markdown, with the notes and the losses below it."""
    lines = ["| campaign | promise | trials | losses |", "|---|---|---:|---:|"]
    for name, found in results.items():
        lines.append(f"| `{name}` | {PROMISES[name]} | {found.trials:,} | {len(found.losses)} |")
    for name, found in results.items():
        lines += [f"\n`{name}`:"] if found.notes or found.losses else []
        lines += [f"- {note}" for note in found.notes]
        lines += [f"- **loss**: {loss}" for loss in found.losses]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
