"""TeX to inline SVG, without a script and without a font to load.

ziamath sets the formula in STIX Two and draws every glyph as a path. Sizes are given in em, so a formula grows with the
text around it; the colour is the text's own; the picture's baseline sits on the line's:

    vertical-align = -(depth below the baseline) / (font size).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache

import ziamath
from ziamath.tex import tex2mml

ziamath.config.svg2 = False  # paths, not <symbol id=…>: ids would repeat on a page with two formulas
ziamath.config.precision = 2
UNITS = 24.0  # user units of the picture in one em
SCALE = 1.15  # STIX looks smaller than a sans serif of the same size
ROWS = "12pt"  # distance of aligned rows: at TeX's own 3pt the limits of sums touch the row above


class FormulaError(ValueError):
    """A formula that cannot be set, with its TeX."""


def _mathml(tex: str, display: bool) -> ET.Element:
    r"""MathML in the text's colour; equations are not numbered, and rows keep one distance whatever `\\[6pt]` asks for."""
    tex = re.sub(r"\\(begin|end)\{align\}", r"\\\1{align*}", tex)
    tex = re.sub(r"\\\\\[[\d.]+[a-z]+\]", r"\\\\", tex)
    text = tex2mml(tex, inline=not display)
    if "\\" in text:  # an unknown command passes through as text
        raise FormulaError(f"the formula {tex!r} has a command that ziamath does not know; write it otherwise")
    mathml = ET.fromstring(text.replace('rowspacing="3pt"', f'rowspacing="{ROWS}"'))
    mathml.set("mathcolor", "currentColor")
    return mathml


@cache
def formula_svg(tex: str, display: bool) -> str:
    """An <svg role="img"> whose label is the TeX itself; `display` sets sums and fractions in full size.

    Raises FormulaError for what is not TeX, and for a command that ziamath does not know.
    """
    tex = tex.strip()
    try:
        picture = ziamath.Math(_mathml(tex, display), size=UNITS).svgxml()
    except FormulaError:
        raise
    except Exception as error:  # the libraries raise bare assertions and the errors of three parsers
        raise FormulaError(f"cannot set the formula {tex!r} ({type(error).__name__}); mend its TeX") from error
    return ET.tostring(_in_em(picture, tex), encoding="unicode")


def _in_em(picture: ET.Element, tex: str) -> ET.Element:
    """The picture with sizes in em, on the baseline of the line it stands in, and with its label."""
    _, top, width, height = (float(number) / UNITS * SCALE for number in picture.attrib["viewBox"].split())
    picture.attrib = {
        "class": "formula",
        "role": "img",
        "aria-label": tex,
        "viewBox": picture.attrib["viewBox"],
        "style": f"width:{width:.3f}em;height:{height:.3f}em;vertical-align:{-(top + height):.3f}em",
    }
    return picture
