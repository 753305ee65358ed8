"""Style and markup of the player in ``player.py``."""

from string import Template

from fbam.recording.colours import BRIGHT, INK, PALETTE, PAPER

SPEEDS = (0.25, 0.5, 1, 2, 4, 8)
LIGHT = (PAPER, *PALETTE[1:], INK)
"""Paper, colours 1 to 15, ink."""
DARK = ("#14171c", *BRIGHT[1:], BRIGHT[0])

STYLE = Template("""
.fbam-player{$light;container-type:inline-size;margin:1rem 0;min-width:0}
@media screen and (prefers-color-scheme:dark){.fbam-player{$dark}}
.fbam-player pre{margin:0;padding:.5em;overflow:auto;line-height:1.2;color:var(--k16);background:var(--k0);
border:1px solid #8c959f;border-radius:4px;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;
font-size:clamp(5px,calc((100cqi - 1.5em)/var(--cols)/.605),16px);white-space:pre}
.fbam-player pre b{display:inline-block;width:2ch;font-weight:inherit}
.fbam-player .controls{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin-top:.4rem;font-size:.86rem}
.fbam-player :is(button,select){font:inherit;padding:.15rem .6rem}
.fbam-player button{min-width:4.5rem}
.fbam-player input{flex:1 1 8rem;min-width:4rem}
.fbam-player output{font-variant-numeric:tabular-nums;min-width:7.5rem;text-align:right}
.fbam-player .keys{display:flex;gap:.25rem;height:2rem;align-items:center;justify-content:flex-end;margin:.3rem 0 0;
overflow:hidden;white-space:nowrap}
.fbam-player kbd{font:.8rem ui-monospace,Menlo,Consolas,monospace;padding:.1rem .4rem;border:1px solid #8c959f;border-radius:4px}
.fbam-player kbd:last-child{color:var(--k0);background:var(--k16)}
.fbam-player:fullscreen{padding:1rem;background:var(--k0);color:var(--k16);overflow:auto}
@media print{.fbam-player .controls,.fbam-player .keys{display:none}}
""")

TEMPLATE = Template("""<figure class="fbam-player" style="--cols:$cols"><style>$style</style>
<pre role="img" tabindex="0" aria-label="$title">$first</pre>
<div class="controls"><button type="button" data-do="play">Play</button>
<input type="range" min="0" max="$last" value="0" aria-label="Frame"><output></output>
<select aria-label="Speed">$speeds</select><button type="button" data-do="full">Full screen</button></div>
<div class="keys" aria-hidden="true"></div><figcaption>$title</figcaption>
<script type="application/json">$data</script><script>$script</script></figure>""")
