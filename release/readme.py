"""Provide README.md as the description of a wheel, with links that work outside of the repository.

scikit-build-core calls this module when it builds a wheel or an sdist.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = "https://github.com/perftrail/perftrail"

IMAGE = re.compile(r"(!\[[^\]]*\]\()(?!https?://)([^)]+)\)")
LINK = re.compile(r"(?<!!)(\[(?:[^\[\]]|\[[^\]]*\])*\]\()(?!https?://|#)([^)]+)\)")


def dynamic_metadata(field: str, _settings: Mapping[str, object]) -> dict[str, str]:
    """Return the field `readme` of the project's metadata."""
    assert field == "readme"
    return {"content-type": "text/markdown", "text": with_addresses(Path("README.md").read_text("utf-8"))}


def with_addresses(text: str) -> str:
    """Return Markdown whose links to files of the repository are addresses."""
    text = IMAGE.sub(rf"\g<1>{REPOSITORY}/raw/main/\g<2>)", text)
    return LINK.sub(rf"\g<1>{REPOSITORY}/blob/main/\g<2>)", text)
