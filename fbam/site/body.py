"""One executed notebook as the body of a page, by nbconvert's `basic` template.

On the way formulas become pictures, pictures get a description, numbers in tables are set flush right, wide tables get
a box to scroll in, and the notebook's own title is taken out for the head of the page.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

from bs4 import BeautifulSoup, Tag
from jinja2 import pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from fbam.site.formulas import FormulaError, formula_svg
from fbam.site.sources import Page, SiteError

NUMBER = re.compile(r"[-−+±]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?( ?± ?[\d.,]+)?( ?%)?", re.IGNORECASE)
ABSENT = {"", "–", "—", "-", "nan", "None"}  # such a cell leaves a column of numbers a column of numbers
UNDESCRIBED = "No description has been provided for this image"  # nbconvert's own words
HEADINGS = ["h1", "h2", "h3", "h4"]

_log = logging.getLogger(__name__)
_log.setLevel(logging.ERROR)  # nbconvert warns of pictures without description, which get one here


@dataclass(frozen=True)
class Body:
    """HTML of a notebook: its own title if it has one, and everything below it."""

    title: str | None
    html: str


class _Renderer(IPythonRenderer):
    """nbconvert's Markdown, with formulas drawn instead of left to a script."""

    def inline_math(self, body: str) -> str:
        return formula_svg(body, display=False)

    def block_math(self, body: str) -> str:
        return f'<span class="display">{formula_svg(body, display=True)}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")


class _Exporter(HTMLExporter):
    """The `basic` template without prompts; made once, because it compiles its templates."""

    @pass_context
    def markdown2html(self, context, source: str) -> str:
        attachments = context.get("cell", {}).get("attachments", {})
        renderer = _Renderer(escape=False, attachments=attachments, anchor_link_text="")
        return MarkdownWithMath(renderer=renderer).render(source)


@cache
def _exporter() -> _Exporter:
    return _Exporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True, log=_log)


def _plain(tag: Tag) -> str:
    """Text of a tag, with the TeX of its formulas."""
    parts = [node if isinstance(node, str) else node.get("aria-label", "") for node in tag.descendants
             if isinstance(node, str) or node.name == "svg"]
    return " ".join("".join(parts).split())


def _name_anchors(soup: BeautifulSoup) -> None:
    for link in soup.select("a.anchor-link"):
        link["aria-label"] = "Link to this heading"


def _describe_pictures(soup: BeautifulSoup, page: Page) -> None:
    """Alt text from the cell's metadata (`alt`, else `caption`), else from the nearest heading; captions are shown."""
    cells = {f"cell-id={cell.get('id')}": cell.metadata for cell in page.notebook.cells}
    for number, image in enumerate(soup.select(":is(.output_svg, .output_png, .output_jpeg) > img"), 1):
        metadata = cells.get(image.find_parent(class_="cell").get("id"), {})
        heading = image.find_previous(HEADINGS)
        nearest = f"Figure {number}: {_plain(heading) if heading else page.title}"
        if image.get("alt", UNDESCRIBED) == UNDESCRIBED:
            image["alt"] = metadata.get("alt") or metadata.get("caption") or nearest
        figure = image.wrap(soup.new_tag("figure"))
        if metadata.get("caption"):
            figure.append(soup.new_tag("figcaption", string=metadata["caption"]))


def _align_numbers(table: Tag) -> None:
    """Mark the columns whose data cells are all numbers; a cell that says there is none does not count."""
    rows = [row.find_all(["td", "th"]) for row in table.find_all("tr")]
    for column in zip_longest(*rows):
        cells = [cell for cell in column if cell is not None]
        texts = [text for cell in cells if cell.name == "td" and (text := cell.get_text(strip=True)) not in ABSENT]
        if texts and all(NUMBER.fullmatch(text) for text in texts):
            for cell in cells:
                cell["class"] = [*cell.get("class", []), "num"]


def _box_tables(soup: BeautifulSoup) -> None:
    """Each table in a box that scrolls, reachable by keyboard, so that the page itself never does."""
    for number, table in enumerate(soup.find_all("table"), 1):
        _align_numbers(table)
        del table["border"]
        table.wrap(soup.new_tag("div", attrs={"class": "scroll", "tabindex": "0", "role": "region",
                                              "aria-label": f"Table {number}"}))


def _link_pages(soup: BeautifulSoup) -> None:
    """A link to another notebook leads to its page."""
    for link in soup.select("a[href]"):
        link["href"] = re.sub(r"^([\w-]+)\.ipynb(?=#|$)", r"\1.html", link["href"])


def _take_title(soup: BeautifulSoup) -> str | None:
    title = soup.find("h1")
    if title is None:
        return None
    for link in title.select("a.anchor-link"):
        link.decompose()
    return title.extract().decode_contents()


def render(page: Page) -> Body:
    """Raises SiteError naming the notebook if one of its formulas cannot be set."""
    try:
        html, _ = _exporter().from_notebook_node(page.notebook)
    except FormulaError as error:
        raise SiteError(f"notebooks/{page.stem}.ipynb: {error}") from error
    soup = BeautifulSoup(html, "html.parser")
    _name_anchors(soup)
    _describe_pictures(soup, page)
    _box_tables(soup)
    _link_pages(soup)
    return Body(_take_title(soup), str(soup))
