"""Makes subjects usable: each in a directory of its own, named by the content that went in."""

from perftrail.builder.clean import AwayBuilder, CleanBuilder, Makers
from perftrail.builder.crew import Crew, LeadingBuilder, Places, Stoppable, StoppableEnclosing
from perftrail.builder.local import LocalBuilder

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
