// A flame graph of a difference: zoom, search, keyboard. Its data are columns with one value for each node.
// One canvas, as large as the window, shows the visible rows. Elements for 25,000 frames would take too long to draw.
(function () {
  "use strict";
  const data = FLAME_DATA;
  const SMALLEST = 1.5, LINES = 12, LETTER = 6.6, ORANGE = [217, 95, 2], BLUE = [33, 102, 172];
  const night = window.matchMedia("(prefers-color-scheme: dark)");
  const DAY = { back: [255, 255, 255], same: [230, 230, 230], found: [106, 0, 168], pale: "#666", current: "#000", before: "#2166ac", after: "#7f3b08" };
  const NIGHT = { back: [21, 24, 29], same: [64, 70, 80], found: [150, 80, 220], pale: "#a2a9b5", current: "#fff", before: "#6db8ea", after: "#ff9a57" };
  const row = window.matchMedia("(pointer: coarse)").matches ? 26 : 19, count = data.parents.length;

  const still = document.getElementById("flame"), title = still.querySelector("title").textContent;
  const page = document.createElementNS("http://www.w3.org/1999/xhtml", "div");
  page.id = "flame";
  page.innerHTML = `<meta name="viewport" content="width=device-width, initial-scale=1"/><title></title>
    <style>
      #flame { --back: #fff; --text: #111; background: var(--back); color: var(--text); font: 14px sans-serif; color-scheme: light dark }
      @media (prefers-color-scheme: dark) { #flame { --back: #15181d; --text: #e4e7ec } } #flame header { padding: 6px 8px }
      #flame h1 { font-size: 15px; margin: 0 0 6px } #flame p { margin: 6px 0 0 } #flame input { font-size: 16px; width: 11em }
      #flame #details { font: 12px monospace; min-height: 3em; overflow-wrap: anywhere }
      #flame i { display: inline-block; width: 1em; height: 1em; vertical-align: -2px }
      #flame i.same { background: rgb(230,230,230) } @media (prefers-color-scheme: dark) { #flame i.same { background: rgb(64,70,80) } }
      #flame canvas { display: block; position: sticky; top: 0; cursor: pointer }
    </style>
    <header><h1></h1><button id="reset">whole program</button> <input id="search" type="search"
      placeholder="search ( / )" aria-label="search functions"/> <span id="found" role="status"></span>
    <p><i style="background: rgb(217,95,2)"></i> more after <i style="background: rgb(33,102,172)"></i> less
      <i class="same"></i> the same; upper line: cost before, lower line: after</p>
    <p id="details" aria-live="polite"></p></header>
    <main id="frames"><canvas tabindex="0" role="application" aria-describedby="details"></canvas></main>`;
  page.querySelector("title").textContent = page.querySelector("h1").textContent = title;
  still.replaceWith(page);
  const frames = page.querySelector("#frames"), canvas = page.querySelector("canvas"), pen = canvas.getContext("2d", { alpha: false });
  const details = page.querySelector("#details"), input = page.querySelector("#search");
  const strips = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas");
  const found = page.querySelector("#found"), reset = page.querySelector("#reset");
  canvas.setAttribute("aria-label", title);

  const left = new Float64Array(count), filled = new Float64Array(count), depth = new Int32Array(count);
  const first = new Int32Array(count).fill(-1), last = new Int32Array(count).fill(-1), next = new Int32Array(count).fill(-1);
  const previous = new Int32Array(count).fill(-1);
  for (let node = 1; node < count; node++) {
    const parent = data.parents[node];
    left[node] = left[parent] + filled[parent];
    filled[parent] += data.widths[node];
    depth[node] = depth[parent] + 1;
    if (first[parent] < 0) first[parent] = node;
    else { next[last[parent]] = node; previous[node] = last[parent]; }
    last[parent] = node;
  }
  let focus = 0, current = 0, matches = null, width = 0, rows = [], painted = 0;

  const percent = (value, whole) => (whole > 0 ? (100 * value / whole).toPrecision(3) : "0") + " %";
  // A shade is its pixel, its pixel where it is pale, and the colour of its text.
  const pixel = ([red, green, blue]) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
  const mixed = (one, other, part) => one.map((value, at) => Math.round(value + (other[at] - value) * part));
  const css = (colour) => "rgb(" + colour.join(",") + ")";
  const ink = ([red, green, blue]) => (0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#111" : "#fff");
  let look = DAY, shades = [];
  function dress() {
    look = night.matches ? NIGHT : DAY;
    const shaded = (colour) => [pixel(colour), pixel(mixed(look.back, colour, 0.45)), ink(colour)];
    shades = [shaded(look.same)];
    for (const end of [ORANGE, BLUE]) {
      for (let part = 0.25; part <= 1; part += 0.09375) shades.push(shaded(mixed(look.same, end, part)));
    }
  }
  const shade = Uint8Array.from(data.before, (before, node) => {
    const larger = Math.max(before, data.after[node]), change = data.after[node] - before;
    if (Math.abs(change) < data.before[0] * 0.0005 || larger <= 0) return 0;
    return (change > 0 ? 1 : 10) + Math.round(8 * Math.min(1, Math.abs(change) / larger));
  });
  function label(node) {
    const [name, file, line] = data.names[data.functions[node]];
    const place = file ? " (" + file + (line ? ":" + line : "") + ")" : "";
    const change = (data.after[node] - data.before[node]) / (data.before[0] || 1) * 100;
    return name + place + ": " + percent(data.before[node], data.before[0]) + " of the total before, "
      + percent(data.after[node], data.after[0]) + " after; " + (change < 0 ? "−" : "+") + Math.abs(change).toPrecision(3)
      + " % of the total before";
  }
  // Find the frames of each row: the callers of the focus, then every callee that is wide enough to see.
  function layout() {
    width = document.documentElement.clientWidth;
    rows = [];
    for (let node = data.parents[focus]; node >= 0; node = data.parents[node]) rows[depth[node]] = [{ node, x: 0, size: width }];
    const scale = width / (data.widths[focus] || 1), stack = [focus];
    while (stack.length) {
      const node = stack.pop(), size = node === focus ? width : data.widths[node] * scale;
      if (size < SMALLEST) continue;
      (rows[depth[node]] = rows[depth[node]] || []).push({ node, x: (left[node] - left[focus]) * scale, size });
      for (let child = last[node]; child >= 0; child = previous[child]) stack.push(child);
    }
    frames.style.height = rows.length * row + "px";
    page.dataset.frames = rows.reduce((sum, each) => sum + each.length, 0);
    page.dataset.focus = data.names[data.functions[focus]][0];
  }
  // Draw the visible rows: first every frame as pixels of a picture that is one pixel high for each row, and is
  // stretched. Calls of the canvas for each frame would take three times as long. Then lines and names of wide frames.
  function paint() {
    const ratio = window.devicePixelRatio || 1, height = Math.min(window.innerHeight, rows.length * row);
    const hidden = Math.max(0, -frames.getBoundingClientRect().top), high = Math.round((row - 1) * ratio);
    painted = window.scrollY;
    const start = Math.floor(hidden / row), shown = rows.slice(start, Math.ceil((hidden + height) / row));
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    const picture = new ImageData(canvas.width, shown.length), pixels = new Uint32Array(picture.data.buffer), wide = [];
    shown.forEach((each, level) => each.forEach(({ node, x, size }) => {
      const begin = Math.round(x * ratio), end = Math.round((x + size) * ratio), gap = end - begin > 3 * ratio ? 1 : 0;
      const hit = matches && matches[data.functions[node]], pale = node !== current && (depth[node] < depth[focus] || (matches && !hit));
      const colour = hit && size < LINES ? pixel(look.found) : shades[shade[node]][pale ? 1 : 0];
      pixels.fill(colour, level * canvas.width + begin, level * canvas.width + end - gap);
      if (size >= LINES || node === current) wide.push({ node, hit, ink: pale ? look.pale : shades[shade[node]][2], x: begin, y: top(level), size: end - begin - gap });
    }));
    function top(level) { return Math.round(((start + level) * row - hidden) * ratio); }
    strips.width = picture.width;
    strips.height = picture.height;
    strips.getContext("2d").putImageData(picture, 0, 0);
    pen.fillStyle = css(look.back);
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.imageSmoothingEnabled = false;
    shown.forEach((_, level) => pen.drawImage(strips, 0, level, picture.width, 1, 0, top(level), picture.width, high));
    pen.font = 11 * ratio + "px monospace";
    for (const each of wide) write(each, high, ratio);
  }
  // Add what a wide frame has besides its colour: the costs before and after as lines, the name, an outline.
  function write({ node, hit, ink, x, y, size }, high, ratio) {
    const line = Math.round(2 * ratio), scale = size / (data.widths[node] || 1);
    const letters = Math.floor((size / ratio - 6) / LETTER), name = data.names[data.functions[node]][0];
    pen.fillStyle = look.before;
    pen.fillRect(x, y + high - 2 * line, data.before[node] * scale, line);
    pen.fillStyle = look.after;
    pen.fillRect(x, y + high - line, data.after[node] * scale, line);
    pen.fillStyle = ink;
    if (letters > 2) pen.fillText(name.length > letters ? name.slice(0, letters - 1) + "…" : name, x + 3 * ratio, y + high - 7 * ratio);
    if (node !== current && !hit) return;
    pen.strokeStyle = node === current ? look.current : css(look.found);
    pen.lineWidth = 2 * ratio;
    pen.strokeRect(x + ratio, y + ratio, Math.max(1, size - 2 * ratio), high - 2 * ratio);
  }
  // Make a frame the current one: zoom to its caller if it is too narrow to see, and scroll to its row.
  function move(node) {
    if (node < 0) return;
    current = node;
    details.textContent = label(node);
    const visible = (rows[depth[node]] || []).some((each) => each.node === node);
    if (!visible) {
      focus = Math.max(0, data.parents[node]);
      layout();
    }
    const top = frames.getBoundingClientRect().top + depth[node] * row;
    if (top < 0 || top + row > window.innerHeight) window.scrollBy(0, top - window.innerHeight / 2);
    paint();
  }
  function zoom(node) {
    focus = node;
    layout();
    move(node);
  }
  function search(text) {
    const wanted = text.trim().toLowerCase();
    matches = wanted ? data.names.map((name) => name[0].toLowerCase().includes(wanted)) : null;
    if (!matches) found.textContent = "";
    else {
      const inside = new Uint8Array(count);
      let before = 0, after = 0, nodes = 0;
      for (let node = 0; node < count; node++) {
        const parent = data.parents[node];
        inside[node] = parent >= 0 ? inside[parent] : 0;
        if (!matches[data.functions[node]]) continue;
        nodes++;
        if (!inside[node]) { before += data.before[node]; after += data.after[node]; }
        inside[node] = 1;
      }
      found.textContent = nodes + (nodes === 1 ? " frame, " : " frames, ") + percent(before, data.before[0]) + " before, " + percent(after, data.after[0]) + " after";
    }
    paint();
  }
  function at(event) {
    const box = frames.getBoundingClientRect(), x = event.clientX - box.left;
    const under = (rows[Math.floor((event.clientY - box.top) / row)] || []).find((each) => each.x <= x && x < each.x + each.size);
    return under ? under.node : -1;
  }
  canvas.addEventListener("click", (event) => { const node = at(event); if (node >= 0) zoom(node); });
  canvas.addEventListener("mousemove", (event) => { const node = at(event); if (node >= 0) details.textContent = label(node); });
  input.addEventListener("input", () => search(input.value));
  reset.addEventListener("click", () => zoom(0));
  document.addEventListener("keydown", (event) => {
    if (event.target === input) {
      if (event.key === "Escape") { input.value = ""; search(""); input.blur(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || (event.key === "Enter" && event.target === reset)) return;
    const keys = {
      ArrowDown: () => move(first[current]),
      ArrowUp: () => { if (current === focus && focus > 0) zoom(data.parents[focus]); else move(data.parents[current]); },
      ArrowRight: () => move(next[current]),
      ArrowLeft: () => move(previous[current]),
      Enter: () => zoom(current),
      Escape: () => zoom(0),
      "/": () => input.focus(),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  window.addEventListener("resize", () => { layout(); paint(); });
  window.addEventListener("scroll", () => { if (window.scrollY !== painted) paint(); });
  night.addEventListener("change", () => { dress(); paint(); });
  dress();
  zoom(0);
})();
