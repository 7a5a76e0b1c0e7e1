"""perftrail follows the trail of performance through a program's history."""

__version__ = "0.1.0"
