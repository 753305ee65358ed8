"""The site without a browser: order, verdicts, formulas, pictures, tables, errors, and nothing from elsewhere."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import nbformat
import pytest
import ziamath
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from site_example import CLAIMS, NOTEBOOKS, PROVENANCE, TIMED, claim, executed_project, write_ledgers, write_notebook, write_project

from fbam.analysis.claims import Source, Verdict
from fbam.analysis.player import player_html
from fbam.recording.cells import blank
from fbam.site.body import _align_numbers
from fbam.site.build import MEANINGS, SOURCES, WORDS, build_site, outside, show
from fbam.site.formulas import SCALE, UNITS, FormulaError, formula_svg
from fbam.site.sources import SiteError, section_key, section_label

SAMPLES = (
    r"\mathrm{loss}(L\mid s)\approx A(s)\,L^{-\alpha(s)}",
    r"B D N_f^2\left[\tfrac{16}{3}(1-4^{-P})+4L_t4^{-P}\right]",
    r"\begin{aligned} a &= \frac{1}{2} \\[6pt] b &= \sum_{i=0}^{n} x_i \end{aligned}",
    r"a < b \& c > 40\,\% \text{ of d}",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """The example, executed and built once."""
    root = executed_project(tmp_path_factory.getbasetemp())
    build_site(root)
    return root


@pytest.fixture
def draft(tmp_path) -> Path:
    """The example with notebooks that were never run: quick to build and to break."""
    return write_project(tmp_path, executed=False)


def page(root: Path, name: str) -> BeautifulSoup:
    """A built page, parsed."""
    return BeautifulSoup((root / f"build/site/{name}.html").read_text("utf-8"), "html.parser")


def digest(root: Path) -> dict[str, str]:
    """File name -> hash of its bytes."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((root / "build/site").iterdir())}


# Order and numbers

def test_sections_sort_as_in_the_paper():
    ordered = ["2", "8.1", "8.1.1, Table 2", "§10.1", "10.5", "10.10", "App. B", "J", "", "the ledger"]
    assert sorted(reversed(ordered), key=section_key)[:8] == ordered[:8]
    assert section_key("")[0] == section_key("the ledger")[0] == 2
    assert [section_label(section) for section in ("10.4, App. E", "J", "App. J", "the ledger")] == [
        "Section 10.4", "Appendix J", "Appendix J", ""]


@pytest.mark.parametrize("text, shown", [
    ("0.318", "0.318"), ("2.679e+14", "2.679 × 10¹⁴"), ("-1.517e+04 keys", "-15,170 keys"), ("head: 2.679e14, main: 3e-05", "head: 2.679 × 10¹⁴, main: 3 × 10⁻⁵"),
    (None, "—"), ("L^-alpha <b> at 3e8f", "L^-alpha <b> at 3e8f")])
def test_values_read_as_a_reader_writes_them(text, shown):
    assert show(text) == shown


@given(st.floats(-1e300, 1e300))
def test_powers_of_ten_are_the_number_s_own(value):
    shown = show(f"{value:.4g}")
    assert "e" not in shown
    plain = shown.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")).replace(" × 10", "e").replace(",", "")
    assert float(plain) == float(f"{value:.4g}")


# Formulas

@pytest.mark.parametrize("tex", SAMPLES)
@pytest.mark.parametrize("display", [True, False])
def test_a_formula_is_a_labelled_picture_in_the_colour_of_the_text(tex, display):
    svg = BeautifulSoup(formula_svg(tex, display), "html.parser").svg
    assert svg["role"] == "img" and svg["aria-label"] == tex
    assert svg.find_all(["path", "rect"]) and {shape["fill"] for shape in svg.find_all(["path", "rect"])} == {"currentColor"}
    assert not svg.select("[id], use, symbol, text, script")
    assert "pt" not in svg.get_text()


def test_a_formula_stands_on_the_line():
    style = BeautifulSoup(formula_svg("y_t", False), "html.parser").svg["style"]
    depth = float(re.search(r"vertical-align:-([\d.]+)em", style)[1])
    drawn = ziamath.Latex("y_t", size=UNITS, inline=True)
    assert depth == pytest.approx((drawn.margin - drawn.getyofst()) / UNITS * SCALE, abs=2e-3)
    assert depth > 0.1


@pytest.mark.parametrize("tex", [r"\foo{x}", r"\frac{1}", "x_", r"\left( x", "", r"\unicode{x}", r"\text{40 \%}"])
def test_a_formula_that_cannot_be_set_is_named(tex):
    with pytest.raises(FormulaError, match=re.escape(repr(tex))):
        formula_svg(tex, True)


def test_formulas_are_found_in_text_and_nowhere_else(project):
    body = page(project, "10_1_corpus").select_one(".notebook")
    labels = [svg["aria-label"] for svg in body.select("svg.formula")]
    assert labels == [r"R \times C", "n", "N_f", "V"]
    assert "echo $HOME and $PATH" in [code.get_text() for code in body.find_all("code")]
    assert "Money is written $5." in body.get_text()
    scaling = page(project, "10_5_scaling").select_one(".notebook")
    assert [svg["aria-label"] for svg in scaling.select(".display svg")][0] == SAMPLES[0]
    assert scaling.select(".display svg")[1]["aria-label"].startswith(r"\begin{align}")


def test_a_bad_formula_names_its_notebook(draft):
    write_notebook(draft, "J_flops", "flops", "J", "FLOPs", False, [new_markdown_cell(r"Here $\foo$ stands")])
    with pytest.raises(SiteError, match=r"notebooks/J_flops\.ipynb.*\\foo"):
        build_site(draft)


# Pages

def test_pages_follow_the_paper_and_ignore_what_dvc_does_not_list(project):
    order = ["index", "10_1_corpus", "10_1_data", "10_5_scaling", "J_flops", "ledger"]
    assert {path.name for path in (project / "build/site").iterdir()} == {f"{name}.html" for name in order} | {"style.css"}
    for position, name in enumerate(order):
        soup = page(project, name)
        for menu in soup.select("nav[aria-label=Contents]"):
            assert [link["href"] for link in menu.find_all("a")] == [f"{stem}.html" for stem in order]
            assert [link["href"] for link in menu.select("[aria-current=page]")] == [f"{name}.html"]
        assert [link["href"] for link in soup.select("a[rel=prev]")] == [f"{order[position - 1]}.html"] * (position > 0)
        following = order[position + 1:position + 2] if position else []
        assert [link["href"] for link in soup.select("a[rel=next]")] == [f"{stem}.html" for stem in following]


def test_each_page_has_one_title_and_its_own_verdicts(project):
    for name, (_, _, title, measured, _) in NOTEBOOKS.items():
        soup = page(project, name)
        assert len(soup.find_all("h1")) == 1 and soup.title.get_text().startswith(title)
        judged = {row.id: row for row in [*CLAIMS, *TIMED] if row.notebook == name}
        boxed = {item["id"].removeprefix("claim-"): item for item in soup.select(".claims li")}
        assert boxed.keys() == judged.keys() and bool(soup.select(".claims")) == bool(judged)
        for key, item in boxed.items():
            assert item.select_one(".verdict").get_text() == judged[key].verdict
            assert show(judged[key].ours) in [value.get_text(strip=True) for value in item.find_all("dd")]
        assert ("differs from run to run" in soup.get_text()) == measured
    assert page(project, "10_1_corpus").h1.get_text() == "The data: from git history to recording"
    assert page(project, "J_flops").h1.get_text() == "Model FLOP estimation"


PAPER_ORDER = ["Section 2", "Section 7", "Section 8.1.1", "Section 10.1", "Section 10.5", "Appendix J"]


def test_the_front_page_counts_and_shows_every_claim(project):
    soup = page(project, "index")
    counts = {item.select_one(".verdict").get_text(): int(item.strong.get_text()) for item in soup.select(".counts li")}
    assert counts == {verdict: sum(row.verdict == verdict for row in [*CLAIMS, *TIMED]) for verdict in MEANINGS}
    judged, idle = ([head.get_text().strip() for head in ledger.select(".group")] for ledger in soup.select(".ledger"))
    assert len(judged) == len(set(judged)) and len(idle) == len(set(idle)), "a section stands once in each table"
    for ledger, wanted in zip(soup.select(".ledger"), (False, True), strict=True):
        assert {badge.get_text() == "not run" for badge in ledger.select(".verdict")} == {wanted}
    assert [*judged, *idle] == [head for rows in (judged, idle) for head in sorted(rows, key=PAPER_ORDER.index)]
    assert soup.select_one(".warning") is None
    for row in [*CLAIMS, *TIMED]:
        shown = soup.find(id=f"claim-{row.id}")
        assert row.statement in shown.get_text() and row.note in shown.get_text()
        assert shown.select_one(".verdict")["class"] == ["verdict", row.verdict.replace(" ", "-")]
        paper, ours = (cell.get_text(" ", strip=True) for cell in shown.select(".value"))
        assert paper == show(row.paper) + f" {SOURCES[row.source]}".rstrip()
        assert ours == show(row.ours)
        places = [place.get_text() for place in shown.select(".where") if not place.find("a")]
        assert places == [row.section] * (row.section == "2, App. A")
        assert [link["href"] for link in shown.find_all("a")] == [f"{row.notebook}.html#claim-{row.id}"] * bool(row.notebook)
    assert [term.get_text() for term in soup.select(".words dt")] == list(WORDS)
    for value in PROVENANCE.values():
        assert value in soup.select_one(".provenance").get_text()


def test_every_verdict_has_a_meaning_and_a_colour():
    css = (Path(__file__).parents[1] / "fbam/site/style.css").read_text("utf-8")
    assert set(MEANINGS) == set(get_args(Verdict)) and set(SOURCES) == set(get_args(Source))
    assert all(re.search(rf"^\.{verdict.replace(' ', '-')} {{ --tone:", css, re.MULTILINE) for verdict in MEANINGS)


# Outputs

def test_pictures_are_described_by_metadata_else_by_the_heading(project):
    svg, png = page(project, "10_5_scaling").select("figure")
    assert svg.img["alt"].startswith("Two lines") and svg.img["src"].startswith("data:image/svg+xml;base64,")
    assert svg.figcaption.get_text() == "Loss against trained length."
    assert png.img["alt"] == r"Figure 2: The fit of \alpha(s)" and png.figcaption is None
    for name in NOTEBOOKS:
        assert all(image["alt"] and "No description" not in image["alt"] for image in page(project, name).find_all("img"))


def test_streams_errors_and_coloured_code_are_on_the_page(project):
    corpus, flops = page(project, "10_1_corpus"), page(project, "J_flops")
    assert "7,680 cells a frame" in corpus.select_one(".output_stdout pre").get_text()
    assert "slow disk" in corpus.select_one(".output_stderr pre").get_text()
    assert "KeyError" in flops.select_one(".output_error pre").get_text()
    assert "def" in [word.get_text() for word in page(project, "10_5_scaling").select(".input_area .k")]
    assert corpus.select_one(".celltag_injected-parameters")


def test_tables_scroll_in_a_box_and_numbers_are_flush_right(project):
    for name in ("10_1_corpus", "J_flops"):
        for table in page(project, name).select(".notebook table"):
            assert table.parent["class"] == ["scroll"] and table.parent["tabindex"] == "0" and table.parent["aria-label"]
    words, numbers = page(project, "10_1_corpus").select(".notebook table")[1].select("tbody tr")[1].find_all("td")[::4]
    assert "num" not in words.get("class", []) and "num" in numbers["class"] and numbers.get_text(strip=True) == "—"


@pytest.mark.parametrize("cells, numeric", [
    (["1", "2.5"], True), (["−3", "1e-05"], True), (["12,000", "—"], True), (["3.1 ± 0.2", "40 %"], True), (["", "nan"], False),
    (["1", "two"], False), (["10.5.1 and on", "1"], False), (["v1", "2"], False), ([".", ","], False)])
def test_a_column_is_numeric_if_all_its_cells_are(cells, numeric):
    table = BeautifulSoup("<table><tr><th>n</th></tr>" + "".join(f"<tr><td>{text}</td></tr>" for text in cells) + "</table>",
                          "html.parser").table
    _align_numbers(table)
    assert len(table.select(".num")) == (1 + len(cells)) * numeric


# Nothing from elsewhere

def test_no_built_page_points_outside(project):
    """Independent of the builder's own check: plain patterns over the bytes of every page and of the style sheet."""
    loading = re.compile(r"""(?:\b(?:src|srcset|poster|data)\s*=\s*|<link[^>]*href\s*=\s*|url\(\s*|@import\s+)["']?([^"'\s)>]+)""")
    found = []
    for path in (project / "build/site").iterdir():
        text = path.read_text("utf-8")
        assert "<script" not in text and "javascript:" not in text
        found += loading.findall(text)
    assert any(address == "style.css" for address in found) and any(address.startswith("data:image/png") for address in found)
    assert all(address == "style.css" or address.startswith("data:") for address in found)


def test_every_link_inside_the_site_arrives(project):
    names = [path.stem for path in (project / "build/site").glob("*.html")]
    targets = {f"{name}.html": {tag["id"] for tag in page(project, name).select("[id]")} for name in names}
    links = [(f"{name}.html", link["href"]) for name in names for link in page(project, name).select("a[href]")]
    inside = [(here, *href.partition("#")[::2]) for here, href in links if not href.startswith("https://arxiv.org/")]
    assert ("10_1_corpus.html", "10_5_scaling.html", "") in inside  # written as .ipynb in the notebook
    for here, file, fragment in inside:
        assert (file or here) in targets and (not fragment or fragment in targets[file or here]), (here, file, fragment)


STRANGERS = ['<img src="https://example.org/a.png">', '<img src="a.png">', "<script>1</script>", '<script src="x.js"></script>',
             '<link rel="stylesheet" href="//example.org/a.css">', "<style>@import 'https://example.org/a.css';</style>",
             '<p style="background: url(https://example.org/a.png)">', '<svg><use href="https://example.org/a.svg#b"/></svg>',
             '<iframe srcdoc="x"></iframe>', '<p onclick="go()">', '<img srcset="https://example.org/a.png 2x">',
             '<a href="missing.html">x</a>', '<base href="https://example.org/">', '<video poster="http://example.org/a.png">']


@pytest.mark.parametrize("html", STRANGERS)
def test_what_a_browser_would_fetch_is_seen(html):
    assert outside(f"<p>before</p>{html}", {"style.css"})


def test_a_page_that_would_load_something_is_refused(draft):
    html = '<img src="https://example.org/a.png">'
    output = new_output("display_data", data={"text/html": html})
    write_notebook(draft, "J_flops", "flops", "J", "FLOPs", False, [new_code_cell("show()", outputs=[output])])
    with pytest.raises(SiteError, match=r"notebooks/J_flops\.ipynb: its page would need"):
        build_site(draft)


@pytest.mark.parametrize("html", ['<a href="https://arxiv.org/abs/2510.06828">paper</a>', '<img src="data:image/png;base64,AA==">',
                                  '<link rel="stylesheet" href="style.css">', '<a href="#here">x</a>', '<a href="J.html#x">x</a>'])
def test_links_and_own_files_may_stand(html):
    assert outside(html, {"style.css", "J.html"}) == []


def test_a_player_may_stand_and_nothing_that_looks_like_one():
    player = player_html(blank(3, 12)[None], ["x"], "a session")
    assert outside(player, set()) == []
    for wrong in (player.replace("(() =>", "alert(1); (() =>"), player.replace("<script>", '<script src="x.js">'),
                  player.replace("fbam-player", "player")):
        assert wrong != player and outside(wrong, set())


# Errors

def test_a_missing_notebook_names_the_stage_that_makes_it(draft):
    (draft / "build/notebooks/10_5_scaling.ipynb").unlink()
    with pytest.raises(SiteError, match=r"^build/notebooks/10_5_scaling\.ipynb is missing; `dvc repro scaling` makes it$"):
        build_site(draft)


@pytest.mark.parametrize("ledger", ["build/results/claims.json", "build/timings/claims.json"])
def test_a_missing_ledger_names_the_stage_that_makes_it(draft, ledger):
    (draft / ledger).unlink()
    with pytest.raises(SiteError, match=f"{ledger} is missing; `dvc repro claims` makes it"):
        build_site(draft)


@pytest.mark.parametrize("file", ["build/notebooks/J_flops.ipynb", "build/results/claims.json", "build/timings/claims.json"])
@pytest.mark.parametrize("content", [
    "{", "[]", "3", "null", "", '{"nbformat": 4, "rows": 1}', '{"rows": [], "provenance": []}', '{"rows": null, "provenance": [{}]}'])
def test_a_malformed_input_is_named_on_one_line(draft, file, content):
    (draft / file).write_text(content)
    with pytest.raises(SiteError, match=re.escape(file)) as caught:
        build_site(draft)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key, value", [("section", None), ("section", 10.5), ("title", 3), ("measured", "no")])
def test_wrong_metadata_names_notebook_and_key(draft, key, value):
    path = draft / "build/notebooks/J_flops.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.fbam[key] = value
    if value is None:
        del notebook.metadata.fbam[key]
    nbformat.write(notebook, path)
    with pytest.raises(SiteError, match=f"J_flops.ipynb: metadata.fbam, {key}: "):
        build_site(draft)


@pytest.mark.parametrize("rows, message", [
    ([claim("a", "2"), claim("a", "3")], "claim a stands twice"),
    ([claim("data.rate", "2")], "claim data.rate stands twice"),
    ([claim("a", "2", notebook="stale")], "claim a rests on notebook stale"),
    ([claim("a", "2").model_copy(update={"verdict": "probably"})], "row a: verdict"),
])
def test_a_wrong_claim_is_named(draft, rows, message):
    write_ledgers(draft, claims=rows)
    with pytest.raises(SiteError, match=message):
        build_site(draft)


# Building

def test_same_inputs_same_bytes_in_another_process(project, tmp_path):
    other = shutil.copytree(project, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("site"))
    repository = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(repository)}
    done = subprocess.run([sys.executable, "-m", "fbam.site"], cwd=other, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "build/site/index.html written\n", "")
    assert digest(other) == digest(project)


def test_the_command_says_what_is_wrong_in_one_line(draft, monkeypatch, capsys):
    from fbam.site.__main__ import main

    (draft / "build/results/claims.json").write_text("{")
    monkeypatch.chdir(draft)
    assert main() == 1
    assert capsys.readouterr().err.startswith("error: build/results/claims.json is not valid JSON")


def test_a_failed_build_leaves_the_old_site(draft):
    build_site(draft)
    before = digest(draft)
    write_ledgers(draft, claims=[claim("a", "2", notebook="stale")])
    with pytest.raises(SiteError):
        build_site(draft)
    assert digest(draft) == before
    assert sorted(path.name for path in (draft / "build").iterdir()) == ["notebooks", "results", "site", "timings"]


def test_a_new_build_replaces_the_old_one_whole(draft):
    build_site(draft)
    (draft / "build/site/old.html").write_text("old")
    write_ledgers(draft, claims=CLAIMS[:1])
    build_site(draft)
    assert "old.html" not in digest(draft)
    assert len(page(draft, "index").select(".ledger .verdict")) == 1 + len(TIMED)
    assert sorted(path.name for path in (draft / "build").iterdir()) == ["notebooks", "results", "site", "timings"]
