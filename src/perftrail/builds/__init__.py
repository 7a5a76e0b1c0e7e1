"""Build subjects, each in its own directory, named by the content key of its inputs."""

from perftrail.builds.builder import LocalBuilder
from perftrail.builds.workers import (
    AwayBuilder,
    CleanBuilder,
    Crew,
    LeadingBuilder,
    Makers,
    Places,
    Stoppable,
    StoppableEnclosing,
)

__all__ = [
    "AwayBuilder",
    "CleanBuilder",
    "Crew",
    "LeadingBuilder",
    "LocalBuilder",
    "Makers",
    "Places",
    "Stoppable",
    "StoppableEnclosing",
]
