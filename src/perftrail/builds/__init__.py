"""Build subjects, each in its own directory, named by the content key of its inputs."""

from perftrail.builds.builder import LocalBuilder
from perftrail.builds.workers import (
    BuilderOptions,
    BuildWorkers,
    CleanBuilder,
    ParallelBuilder,
    RemoteBuilder,
    RemoteBuildWorkers,
    Stoppable,
    StoppableIsolation,
)

__all__ = [
    "BuildWorkers",
    "BuilderOptions",
    "CleanBuilder",
    "LocalBuilder",
    "ParallelBuilder",
    "RemoteBuildWorkers",
    "RemoteBuilder",
    "Stoppable",
    "StoppableIsolation",
]
