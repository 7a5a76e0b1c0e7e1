"""Makes subjects usable: each in a directory of its own, named by the content that went in."""

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
