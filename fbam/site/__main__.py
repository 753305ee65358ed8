"""`python -m fbam.site`, from the project root: writes build/site/index.html and the pages beside it."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """0 on success; 1 with one line on standard error if an input is missing or wrong."""
    sys.modules.setdefault("rfc3987_syntax", None)  # a grammar of IRIs, which no notebook has: 3 of the 4 s of nbformat's import
    from fbam.site.build import build_site
    from fbam.site.sources import SiteError

    try:
        print(f"{build_site(Path())} written")
    except SiteError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
