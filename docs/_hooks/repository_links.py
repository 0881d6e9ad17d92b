"""Links that leave docs/ on the site: to the repository where its address is known, else as text.

On GitHub a page links to CHANGELOG.md or to a source file by a relative path. The site has only the
pages of docs/.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

__all__ = ["on_page_markdown"]

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Rewrite the links of one page."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def rewritten(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link["target"]))
        if target.startswith("docs/"):
            return link[0]
        if config.repo_url:
            return f"[{link['text']}]({config.repo_url.rstrip('/')}/blob/main/{target})"
        return link["text"]

    return _LINK.sub(rewritten, markdown)
