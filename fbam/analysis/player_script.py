"""The script of the player in ``player.py``, the only one that the site lets stand. One a player: it finds its own element, no other."""

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
