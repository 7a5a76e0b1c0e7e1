"""Settings of the site: Sphinx builds it from the Markdown pages that the forge shows. `make site` builds it.

Pages outside of `docs/` are symbolic links here, and Sphinx reads a copy of `docs/` in which they are files. The links
of all pages are relative to the files in the repository.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from pygments.lexers.special import TextLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "perftrail"
project_copyright = author = "perftrail contributors"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

extensions = ["myst_parser", "sphinx_copybutton"]
copybutton_prompt_text = r"\$ |> ?"  # a copied command has no prompt, and no output
copybutton_prompt_is_regexp = True
exclude_patterns = ["__pycache__"]
myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline"]
suppress_warnings = [
    "myst.header"
]  # a report is also a part of other pages: its headings begin at the third level

html_theme = "furo"
html_title = f"perftrail {version}"
html_static_path = ["_static"]
html_favicon = "_static/trail.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7fb2ee", "color-brand-content": "#7fb2ee"},
}

FORGE = (
    f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{os.environ['GITHUB_REPOSITORY']}"
    if os.environ.get("GITHUB_REPOSITORY")
    else None
)
"""The repository's address, which a job of the forge knows. Without it, links to files that are not pages are text."""

SECTIONS = {"evidence": ("results/README", "studies/README")}
"""Pages below a page in the navigation. A README.md has the pages of its directory that it links to, in this order."""

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s:#]+)(#[^()\s]*)?\)")


def page_by_file(app: Sphinx) -> dict[Path, str]:
    """Return each page's name by its file in the repository."""
    return {(DOCS / f"{name}.md").resolve(): name for name in app.env.found_docs}


def linked_file(path: Path) -> Path:
    """Return the file that a link leads to: of a directory its README.md."""
    return path / "README.md" if (path / "README.md").is_file() else path


def link_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Make a page's links lead to pages of the site or to the forge; list the pages of a section in the navigation."""
    pages = page_by_file(app)
    file = (DOCS / f"{name}.md").resolve()
    listed: list[str] = []

    def link(found: re.Match[str]) -> str:
        label, path, anchor = found[1], found[2], found[3] or ""
        real = linked_file((file.parent / path).resolve())
        if real in pages:
            section = SECTIONS.get(name, name.removesuffix("README"))
            if name != pages[real] not in listed and pages[real].startswith(section):
                listed.append(pages[real])
            return f"[{label}](/{pages[real]}.md{anchor})"
        if not real.exists() or (real.is_file() and real.is_relative_to(DOCS)):
            return found[0]
        address = f"{FORGE}/{'tree' if real.is_dir() else 'blob'}/main/{real.relative_to(ROOT)}"
        return f"[{label}]({address}{anchor})" if FORGE else label

    source[0] = LINK.sub(link, source[0])
    if (name in SECTIONS or name.endswith("/README")) and listed:
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(f"/{each}" for each in listed) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Connect the links, and show diagrams as text. Sphinx reads all pages again if this file or their set changes."""
    pages = sorted(str(page) for page in Path(app.srcdir).rglob("*.md"))
    app.add_config_value("read_again", [Path(__file__).read_text("utf-8"), *pages], "env")
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", link_pages)
