"""The companion as pages: executed notebooks and the ledger of claims, as plain HTML that works from a file.

`sources` reads what the pipeline wrote, `body` turns one notebook into HTML, `formulas` draws its TeX, `build` joins them
with the templates and the one style sheet into build/site/. A page loads nothing but itself and style.css,
and runs no script but, where a session is played, the few lines of `fbam.analysis.player_script`; so it reads the same offline,
from a disk, in ten years. The same inputs give the same bytes.
"""
