"""Build subjects, each in its own directory, named by the content key of its inputs."""

from perftrail.builds.builder import LocalBuilder
from perftrail.builds.workers import (
    BuildWorkers,
    CleanBuilder,
    LeadingBuilder,
    Places,
    RemoteBuilder,
    RemoteBuildWorkers,
    Stoppable,
    StoppableEnclosing,
)

__all__ = [
    "BuildWorkers",
    "CleanBuilder",
    "LeadingBuilder",
    "LocalBuilder",
    "Places",
    "RemoteBuildWorkers",
    "RemoteBuilder",
    "Stoppable",
    "StoppableEnclosing",
]
