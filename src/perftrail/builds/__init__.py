"""Build subjects, each in its own directory, named by the content key of its inputs."""

from perftrail.builds.builder import LocalBuilder
from perftrail.builds.workers import (
    AwayBuilder,
    BuildWorkers,
    CleanBuilder,
    LeadingBuilder,
    Places,
    RemoteBuildWorkers,
    Stoppable,
    StoppableEnclosing,
)

__all__ = [
    "AwayBuilder",
    "BuildWorkers",
    "CleanBuilder",
    "LeadingBuilder",
    "LocalBuilder",
    "Places",
    "RemoteBuildWorkers",
    "Stoppable",
    "StoppableEnclosing",
]
