"""The site in a real browser, from disk: nothing requested but files, formulas seen, light, dark, phone, keyboard, print.

Without a Chromium on the PATH the tests are skipped; with FBAM_REQUIRE_BROWSER=1 they fail instead.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import DESKTOP
from site_example import executed_project

from fbam.site.build import build_site

PAGES = ("index", "10_1_corpus", "10_1_data", "10_5_scaling", "J_flops", "ledger")
PHONE = {"width": 360, "height": 740}
CONTRAST = """selector => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = colour => colour.slice(0, 3).map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = tag => { for (; tag; tag = tag.parentElement) {
    const colour = rgb(getComputedStyle(tag).backgroundColor); if (colour[3] !== 0) return colour; } return [255, 255, 255]; };
  return [...document.querySelectorAll(selector)].filter(tag => tag.getClientRects().length).map(tag => {
    const [a, b] = [light(rgb(getComputedStyle(tag).color)), light(ground(tag))].sort((x, y) => y - x);
    return [tag.className + ' ' + tag.textContent.slice(0, 40), (a + .05) / (b + .05)]; });
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The example site, from executed notebooks."""
    return build_site(executed_project(tmp_path_factory.getbasetemp())).parent


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_page_loads_from_disk_alone_and_fits(site, visit, viewport, scheme):
    for name in PAGES:
        tab = visit((site / f"{name}.html").as_uri(), viewport, scheme)
        fetched = [url for url in tab.requested if not url.startswith("data:")]
        assert {url.rsplit("/", 1)[1] for url in fetched} == {f"{name}.html", "style.css"}
        assert all(url.startswith("file://") for url in fetched) and tab.complaints == []
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the window"
        assert tab.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")


def test_the_record_of_requests_would_show_a_page_that_reaches_out(tmp_path, visit):
    (tmp_path / "out.html").write_text('<!DOCTYPE html><title>x</title><img src="http://example.invalid/a.png">')
    tab = visit((tmp_path / "out.html").as_uri())
    assert "http://example.invalid/a.png" in tab.requested and tab.complaints


@pytest.mark.parametrize("scheme, bright", [("light", False), ("dark", True)])
def test_formulas_are_seen_in_the_colour_of_the_text(site, visit, scheme, bright):
    tab = visit((site / "10_5_scaling.html").as_uri(), scheme=scheme)
    shapes = tab.evaluate("""[...document.querySelectorAll('svg.formula')].map(svg => {
        const box = svg.getBoundingClientRect(), ink = svg.querySelector('path').getBoundingClientRect();
        return [box.width, box.height, ink.width, ink.height, getComputedStyle(svg.querySelector('path')).fill,
                getComputedStyle(svg.closest('p, h2')).color]; })""")
    assert len(shapes) == 9
    for width, height, ink_width, ink_height, fill, colour in shapes:
        assert width > 4 and height > 6 and ink_width > 1 and ink_height > 1 and fill == colour
        assert (int(fill[4:].split(",")[0]) > 127) == bright
    heading, text = tab.evaluate("""['h2 svg.formula', 'p > svg.formula'].map(
        selector => document.querySelector(selector).getBoundingClientRect().height)""")
    assert heading > text  # sizes follow the text around them


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(site, visit, scheme):
    selector = ".verdict, p, dt, dd, td, th, h1, h2, a, pre, pre span:not(:has(*)), figcaption, small, summary"
    for name in PAGES:
        measured = visit((site / f"{name}.html").as_uri(), scheme=scheme).evaluate(CONTRAST, selector)
        assert len(measured) > 3
        assert [pair for pair in measured if pair[1] < 4.5] == []


def test_pictures_stand_on_a_white_card_in_the_dark(site, visit):
    ground = "getComputedStyle(document.querySelector('figure img')).backgroundColor"
    assert visit((site / "10_5_scaling.html").as_uri(), scheme="dark").evaluate(ground) == "rgb(255, 255, 255)"


def test_wide_code_tables_and_formulas_scroll_in_their_box(site, visit):
    tab = visit((site / "J_flops.html").as_uri(), PHONE)
    for selector in (".input_area pre", ".output_stdout pre", ".scroll", ".display"):
        reach = tab.evaluate("""selector => { const box = document.querySelector(selector);
            box.scrollLeft = 1e6; return [box.scrollLeft, box.scrollWidth > box.clientWidth]; }""", selector)
        assert reach[0] > 0 and reach[1], selector


def test_the_parameters_that_ran_stand_for_the_defaults(site, visit):
    tab = visit((site / "10_1_corpus.html").as_uri())
    assert tab.locator(".celltag_injected-parameters").is_visible() and not tab.locator(".celltag_parameters").is_visible()


def test_numbers_are_flush_right_and_text_is_not(site, visit):
    tab = visit((site / "10_1_corpus.html").as_uri())
    aligned = tab.evaluate("""[...document.querySelectorAll('.scroll')].map(box =>
        [...box.querySelectorAll('tbody tr:first-child td')].map(cell => getComputedStyle(cell).textAlign))""")
    assert aligned == [["left", "left", "right"], ["left", "right", "right", "right", "right"]]


def test_the_keyboard_reaches_the_content_first(site, visit):
    tab = visit((site / "10_5_scaling.html").as_uri())
    tab.keyboard.press("Tab")
    skip = tab.evaluate("[document.activeElement.className, document.activeElement.getBoundingClientRect().left]")
    assert skip[0] == "skip" and skip[1] >= 0
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "content"


def test_the_menu_of_a_phone_opens_without_a_script(site, visit):
    tab = visit((site / "index.html").as_uri(), PHONE)
    link = tab.locator(".menu a", has_text="Scaling trends")
    assert not link.is_visible() and not tab.locator(".sidebar").is_visible()
    tab.locator(".menu summary").click()
    link.click()
    assert tab.url.endswith("/10_5_scaling.html") and tab.locator("h1").inner_text() == "Scaling trends"


def test_print_leaves_the_navigation_out(site, visit):
    tab = visit((site / "10_5_scaling.html").as_uri(), scheme="dark")
    tab.emulate_media(media="print")
    assert not any(tab.locator(selector).is_visible() for selector in (".site", ".turn", ".skip"))
    assert tab.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert min(ratio for _, ratio in tab.evaluate(CONTRAST, ".verdict, p, pre span, figcaption")) >= 4.5
