"""An archive of Debian source packages in a directory, as apt and dpkg-source read it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.needs import needs
from tests.sources.archives import tar_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

needs_apt = needs("apt-get", "apt-cache", "dpkg-source")

_ABOUT = """\
Format: 3.0 (native)
{field}: {name}
Binary: {name}
Architecture: all
Version: {version}
Maintainer: Nobody <nobody@example.org>
Standards-Version: 4.6.1
"""


@dataclass(frozen=True)
class DebianArchive:
    """A flat archive below a directory."""

    directory: Path

    @property
    def index(self) -> str:
        """The study's location of the archive, which is not signed."""
        return f"[trusted=yes] file:{self.directory} ./"

    def add(self, name: str, version: str, files: Mapping[str, str], *, content: bytes = b"") -> Path:
        """Offer a version of a source package and give its tarball; `content` is a tarball that replaces the files."""
        self.directory.mkdir(parents=True, exist_ok=True)
        written = version.partition(":")[2] or version
        tarball = self.directory / f"{name}_{written}.tar.gz"
        inside = {"debian/control": f"Source: {name}\n", **files}
        files_of_it = {f"{name}-{written}/{path}": text for path, text in inside.items()}
        tarball.write_bytes(content or tar_of(files_of_it))
        about = _ABOUT.format(field="Source", name=name, version=version)
        description = self.directory / f"{name}_{written}.dsc"
        description.write_text(about + _sums(tarball))
        listed = _ABOUT.format(field="Package", name=name, version=version) + _sums(description, tarball)
        with (self.directory / "Sources").open("a") as file:
            file.write(f"{listed}Directory: .\n\n")
        return tarball


def _sums(*paths: Path) -> str:
    """The fields that name files with their checksums."""
    text = ""
    for field, algorithm in (("Files", "md5"), ("Checksums-Sha256", "sha256")):
        text += f"{field}:\n"
        for path in paths:
            content = path.read_bytes()
            text += f" {hashlib.new(algorithm, content).hexdigest()} {len(content)} {path.name}\n"
    return text
