"""Reads a revision's label out of the file that the study names."""

from __future__ import annotations

import re

LARGEST_LABEL_BYTES = 4 << 20
"""A file that holds a version's number is small; more is not read for a label."""


def read_label(pattern: str, text: bytes) -> str:
    r"""Give what a pattern's group finds in a file, nothing where it finds nothing.

    >>> read_label('^V "(.*)"', b'// version\nV "1.2"')
    '1.2'
    """
    found = re.search(pattern, text.decode("utf-8", errors="replace"), re.MULTILINE)
    return (found.group(1) or "").strip() if found else ""
