"""The commands of `python -m benchmarks.profile_prior`."""

from __future__ import annotations

import click

from benchmarks.profile_prior.planted import planted
from benchmarks.profile_prior.simulation import simulation
from benchmarks.profile_prior.studies import studies


@click.group()
def main() -> None:
    """Search with a profile of both ends as prior, and without."""


main.add_command(planted)
main.add_command(studies)
main.add_command(simulation)

if __name__ == "__main__":
    main()
