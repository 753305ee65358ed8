"""Joins notebooks, claims, templates and style sheet into build/site/, which appears whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from jinja2 import Environment, PackageLoader, StrictUndefined

from fbam.analysis.claims import Judged, Source, Verdict
from fbam.analysis.player_script import SCRIPT
from fbam.site.body import render
from fbam.site.sources import SiteError, read_claims, read_pages, section_head, section_label

SITE = Path("build/site")
MEANINGS: dict[Verdict, str] = {
    "holds": "our number passes the test, at the paper’s scale or where scale plays no part",
    "holds in shape": "the trend or the order is there, at our scale; or the paper’s own numbers agree with each other",
    "differs": "it is not; the note says why, as far as we know",
    "argued": "a proof or a definition, with a demonstration beside it",
    "not run": "nothing measures it yet; the note says what it needs",
}
WORDS = {
    "frame": "the terminal screen at one moment, rows x columns of characters with colours",
    "action": "one key or one terminal control sequence; an action token may join several keys",
    "length L": "frames in a row that a model is trained on at once; batch x L is the number of labels an update",
    "nats": "the unit of a loss in natural logarithms; guessing among V actions costs ln V",
    "first-parent line": "the commits of the main branch, a merge counting as one step",
    "true depth": "the longest chain of operations that must wait for one another",
    "recurrence-complete": "able to compute any update of a state from the state before, associative or not",
    "criticality": "the length from which a model of fixed depth can no longer follow the state",
    "jumps task (FRJT)": "programs of forward jumps; the model says in which of two states the program halts",
    "U3, U1, U0": "diffs with three, one or no lines of context",
    "TC0, AC0": "what circuits of constant depth can compute, with and without threshold gates",
}
SOURCES: dict[Source, str] = {"paper": "", "secondary": "press summary", "inferred": "our reading"}
SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
PROVENANCE = ("profile", "scale", "processor", "commit", "source")  # shown one by one; the rest are versions


def _raise(found: re.Match[str]) -> str:
    """1.517e+04 is written out; from 10⁹ on, and for small numbers, the power of ten is raised."""
    mantissa, exponent = found[1], int(found[2])
    if 0 <= exponent < 9:
        return f"{float(found[0]):,.0f}"
    return f"{mantissa} × 10{str(exponent).translate(SUPERSCRIPT)}"


def show(text: str | None) -> str:
    """A value of the ledger as a reader writes it, without e-notation; a dash for none.

    >>> [show(text) for text in ("0.3179", "head: 2.679e+14", "1.517e+04", "3e-05", None)]
    ['0.3179', 'head: 2.679 × 10¹⁴', '15,170', '3 × 10⁻⁵', '—']
    """
    return "—" if text is None else re.sub(r"(\d[\d.]*)e([-+]?\d+)\b", _raise, text)


def outside(html: str, own: set[str]) -> list[str]:
    """What a page would load from elsewhere, or link to in vain: scripts other than the player's, and addresses that are not among `own` files.

    Links a reader may follow to http(s) addresses are free; whatever a browser fetches by itself is not.
    """
    soup = BeautifulSoup(html, "html.parser")
    found = [f"<{tag.name}>" for tag in soup.find_all(["script", "iframe", "object", "embed", "base"]) if not _of_player(tag)]
    found += [name for tag in soup.find_all(True) for name in tag.attrs if name.startswith("on")]
    addresses = [tag[name] for name in ("src", "srcset", "poster", "background") for tag in soup.select(f"[{name}]")]
    addresses += [tag.get("href") or tag.get("xlink:href", "") for tag in soup.find_all(["link", "use", "image"])]
    addresses += [tag["href"] for tag in soup.select("a[href]") if not re.match(r"https?:|mailto:", tag["href"])]
    styles = [tag.get_text() for tag in soup.find_all("style")] + [tag["style"] for tag in soup.select("[style]")]
    addresses += re.findall(r"""(?:url\(|@import)\s*["']?([^"')\s]+)""", "\n".join(styles))
    return found + [address for address in addresses
                    if not address.startswith(("data:", "#")) and address.partition("#")[0] not in own]


def _of_player(tag: Tag) -> bool:
    """Whether a tag is the data or the very script of a player of recordings."""
    inside = tag.name == "script" and tag.parent is not None and "fbam-player" in tag.parent.get("class", [])
    known = tag.attrs == {"type": "application/json"} or not tag.attrs and tag.get_text() == SCRIPT
    return inside and known


def _environment() -> Environment:
    environment = Environment(loader=PackageLoader("fbam.site"), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters |= {"show": show, "head": section_head, "label": section_label, "origin": SOURCES.__getitem__}
    return environment


def _by_section(claims: list[Judged]) -> list[tuple[str, list[Judged]]]:
    return [(section, list(rows)) for section, rows in groupby(claims, key=lambda claim: section_head(claim.section))]


def pages_of_site(root: Path) -> dict[str, str]:
    """File name -> content of the whole site. Raises SiteError for a missing or wrong input."""
    pages = read_pages(root)
    claims, provenance = read_claims(root, {page.stem for page in pages})
    environment = _environment()
    index = environment.get_template("index.html").render(
        pages=pages, current=None, words=WORDS, titles={page.stem: page.title for page in pages},
        ledgers=[(title, _by_section([claim for claim in claims if (claim.verdict == "not run") == idle]))
                 for title, idle in (("Claims with a verdict", False), ("Claims not run yet", True))],
        counts=Counter(claim.verdict for claim in claims), meanings=MEANINGS,
        provenance={name: provenance[name] for name in PROVENANCE if name in provenance},
        versions={name: provenance[name] for name in provenance if name not in PROVENANCE})
    content = {"index.html": index, "style.css": files("fbam.site").joinpath("style.css").read_text("utf-8")}
    template = environment.get_template("notebook.html")
    for before, page, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        content[f"{page.stem}.html"] = template.render(
            pages=pages, current=page, before=before, after=after, body=render(page),
            judged=[claim for claim in claims if claim.notebook == page.stem])
    for name, html in content.items():
        if name.endswith(".html") and (strangers := outside(html, set(content))):
            raise SiteError(f"notebooks/{Path(name).stem}.ipynb: its page would need {strangers[0][:120]}; "
                            "the site runs no script but its player's and loads nothing from elsewhere")
    return content


def build_site(root: Path) -> Path:
    """Write build/site below `root` and return its first page. The old site stays until the new one is complete."""
    content = pages_of_site(root)
    site = root / SITE
    with tempfile.TemporaryDirectory(dir=site.parent, prefix=".site-") as scratch:
        fresh = Path(scratch, "new")
        fresh.mkdir()
        for name, text in content.items():
            (fresh / name).write_text(text, "utf-8")
        if site.exists():
            os.replace(site, Path(scratch, "old"))
        os.replace(fresh, site)
    return site / "index.html"
