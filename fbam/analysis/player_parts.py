"""Style, markup and script of the player in ``player.py``. One script a player: it finds its own element, no other."""

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

SCRIPT = r"""
(() => {
  const root = document.currentScript.parentElement, find = selector => root.querySelector(selector);
  const data = JSON.parse(find('script[type="application/json"]').textContent), {rows, cols, steps, labels} = data;
  const runs = data.runs.map(([text, look]) => [[...text], look]), last = steps.length - 1;
  const screen = find("pre"), play = find('[data-do="play"]'), full = find('[data-do="full"]');
  const scrubber = find("input"), speed = find("select"), place = find("output"), keys = find(".keys");
  const text = Array(rows * cols), looks = Array(rows * cols);
  let shown = -1, playing = false, moment = 0, clock = 0;

  const lines = Array.from({length: rows}, () => document.createElement("span"));
  screen.replaceChildren(...lines.flatMap((line, y) => y ? ["\n", line] : [line]));

  function drawLine(y) {
    const parts = [];
    for (let at = y * cols, end = at + cols; at < end;) {
      const look = looks[at], part = document.createElement("span");
      part.style.cssText = data.looks[look];
      let plain = "";
      for (; at < end && looks[at] === look; at++) {
        if (text[at + 1] === "\0" && at + 1 < end) {
          const wide = document.createElement("b");
          wide.textContent = text[at];
          part.append(plain, wide);
          plain = "";
        } else if (text[at] !== "\0") plain += text[at];
      }
      part.append(plain);
      parts.push(part);
    }
    lines[y].replaceChildren(...parts);
  }

  function show(frame) {
    const stale = new Set();
    if (frame < shown || shown < 0) {
      text.fill(" "); looks.fill(0); shown = -1;
      for (let y = 0; y < rows; y++) stale.add(y);
    }
    while (shown < frame) {
      const step = steps[++shown];
      for (let k = 0; k < step.length; k += 2) {
        const at = step[k], [cells, look] = runs[step[k + 1]];
        stale.add(Math.floor(at / cols));
        cells.forEach((cell, i) => { text[at + i] = cell; looks[at + i] = look; });
      }
    }
    stale.forEach(drawLine);
    scrubber.value = frame;
    scrubber.setAttribute("aria-valuetext", `frame ${frame} of ${last}, ${labels[frame]}`);
    place.textContent = `${frame} of ${last}`;
    const pressed = [];
    for (let t = frame; t >= 0 && pressed.length < 12; t--) if (labels[t]) pressed.unshift(labels[t]);
    keys.replaceChildren(...pressed.map(label => Object.assign(document.createElement("kbd"), {textContent: label})));
  }

  function tick(now) {
    if (!playing) return;
    moment = Math.min(last, moment + (now - clock) / 1000 * data.rate * Number(speed.value));
    clock = now;
    if (Math.floor(moment) !== shown) show(Math.floor(moment));
    moment < last ? requestAnimationFrame(tick) : run(false);
  }

  function run(on) {
    playing = on;
    play.textContent = on ? "Pause" : "Play";
    if (!on) return;
    moment = shown < last ? shown : 0;
    clock = performance.now();
    requestAnimationFrame(tick);
  }

  function move(frame) { run(false); show(Math.max(0, Math.min(last, frame))); }

  play.addEventListener("click", () => run(!playing));
  full.addEventListener("click", () => document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen());
  scrubber.addEventListener("input", () => move(Number(scrubber.value)));
  screen.addEventListener("keydown", event => {
    const act = {" ": () => run(!playing), ArrowRight: () => move(shown + 1), ArrowLeft: () => move(shown - 1),
      Home: () => move(0), End: () => move(last)}[event.key];
    if (act && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); act(); }
  });
  show(0);
})();
"""
