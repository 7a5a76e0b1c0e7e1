"""Study files: reading them, what is wrong with them, and their JSON Schema."""

from __future__ import annotations

from perftrail.studyfile.reading import FILE_NAME, find_upwards, load, mistake
from perftrail.studyfile.schema import schema

__all__ = ["FILE_NAME", "find_upwards", "load", "mistake", "schema"]
