// A flame graph of a difference: zoom, search, keyboard. Its data are columns with one value for each node.
(function () {
  "use strict";
  const data = FLAME_DATA;
  const svg = document.getElementById("flame"), group = document.getElementById("frames");
  const details = document.getElementById("details"), input = document.getElementById("search");
  const found = document.getElementById("found"), reset = document.getElementById("reset");
  const count = data.parents.length, TOP = 76, SMALLEST = 1.5, NARROW = 6;
  const row = window.matchMedia("(pointer: coarse)").matches ? 26 : 19;
  const left = new Float64Array(count), depth = new Int32Array(count);
  const first = new Int32Array(count).fill(-1), last = new Int32Array(count).fill(-1), next = new Int32Array(count).fill(-1);
  const previous = new Int32Array(count).fill(-1), filled = new Float64Array(count);
  for (let node = 1; node < count; node++) {
    const parent = data.parents[node];
    left[node] = left[parent] + filled[parent];
    filled[parent] += data.widths[node];
    depth[node] = depth[parent] + 1;
    if (first[parent] < 0) first[parent] = node;
    else { next[last[parent]] = node; previous[node] = last[parent]; }
    last[parent] = node;
  }
  let focus = 0, current = 0, matches = null, shown = [], narrow = [];

  const escapeText = (text) => text.replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);
  const percent = (value, whole) => (whole > 0 ? (100 * value / whole).toPrecision(3) : "0") + " %";
  function colour(before, after) {
    const larger = Math.max(before, after), change = after - before;
    if (Math.abs(change) < data.before[0] * 0.0005 || larger <= 0) return ["#e6e6e6", "#111"];
    const share = Math.round(8 * Math.min(1, Math.abs(change) / larger)) / 8, part = 0.25 + 0.75 * share;
    const end = change > 0 ? [217, 95, 2] : [33, 102, 172];
    const mixed = end.map((value) => Math.round(230 + (value - 230) * part));
    return ["rgb(" + mixed.join(",") + ")", part > 0.7 ? "#fff" : "#111"];
  }
  function label(node) {
    const [name, file, line] = data.names[data.functions[node]];
    const place = file ? " (" + file + (line ? ":" + line : "") + ")" : "";
    const change = (data.after[node] - data.before[node]) / (data.before[0] || 1) * 100;
    return name + place + ": " + percent(data.before[node], data.before[0]) + " of the total before, "
      + percent(data.after[node], data.after[0]) + " after; " + (change < 0 ? "−" : "+") + Math.abs(change).toPrecision(3)
      + " % of the total before";
  }
  function frame(node, x, width, y, faded) {
    const [fill, ink] = colour(data.before[node], data.after[node]);
    const hit = matches && matches[data.functions[node]];
    const name = data.names[data.functions[node]][0];
    let text = "<g data-node='" + node + "'" + (faded || (matches && !hit) ? " opacity='0.45'" : "") + "><rect x='" + x.toFixed(2)
      + "' y='" + y + "' width='" + Math.max(0.5, width - 0.5).toFixed(2) + "' height='" + (row - 1) + "' fill='" + fill + "'"
      + (node === current ? " stroke='#000' stroke-width='2'" : hit ? " stroke='#6a00a8' stroke-width='2'" : "") + "/>";
    if (width > 12 && data.widths[node] > 0) {
      const scale = (width - 1) / data.widths[node];
      text += "<rect x='" + x.toFixed(2) + "' y='" + (y + row - 5) + "' width='" + (data.before[node] * scale).toFixed(2) + "' height='2' fill='#2166ac'/>"
        + "<rect x='" + x.toFixed(2) + "' y='" + (y + row - 3) + "' width='" + (data.after[node] * scale).toFixed(2) + "' height='2' fill='#7f3b08'/>";
    }
    const letters = Math.floor((width - 6) / 6.6);
    if (letters > 2) {
      text += "<text x='" + (x + 3).toFixed(2) + "' y='" + (y + row - 8) + "' fill='" + ink + "'>"
        + escapeText(name.length > letters ? name.slice(0, letters - 1) + "…" : name) + "</text>";
    }
    return text + "</g>";
  }
  // Frames too narrow for a name: one path for each colour, because a browser needs too long for 20,000 elements.
  function paths() {
    const outlines = new Map();
    narrow.forEach((frames, level) => frames.forEach(([node, x, width]) => {
      const hit = matches && matches[data.functions[node]], wide = Math.max(0.5, width - 0.5).toFixed(1);
      const style = "fill='" + (hit ? "#6a00a8" : colour(data.before[node], data.after[node])[0]) + "'" + (matches && !hit ? " opacity='0.45'" : "");
      const outline = "M" + x.toFixed(1) + " " + (TOP + level * row) + "h" + wide + "v" + (row - 1) + "h-" + wide + "z";
      if (outlines.has(style)) outlines.get(style).push(outline);
      else outlines.set(style, [outline]);
    }));
    return [...outlines].map(([style, outline]) => "<path " + style + " d='" + outline.join("") + "'/>");
  }
  function draw() {
    const width = Math.max(300, (document.documentElement.clientWidth || window.innerWidth) - 8), parts = [];
    const above = [];
    for (let node = data.parents[focus]; node >= 0; node = data.parents[node]) above.unshift(node);
    above.forEach((node, level) => parts.push(frame(node, 4, width - 4, TOP + level * row, true)));
    const scale = (width - 4) / (data.widths[focus] || 1), stack = [focus];
    let lowest = 0;
    shown = above.slice();
    narrow = [];
    while (stack.length) {
      const node = stack.pop(), pixels = data.widths[node] * scale;
      if (pixels < SMALLEST && node !== focus) continue;
      const level = depth[node];
      lowest = Math.max(lowest, level);
      const x = 4 + (left[node] - left[focus]) * scale;
      if (pixels < NARROW && node !== current && node !== focus) (narrow[level] = narrow[level] || []).push([node, x, pixels]);
      else parts.push(frame(node, x, pixels, TOP + level * row, false));
      shown.push(node);
      for (let child = first[node]; child >= 0; child = next[child]) stack.push(child);
    }
    group.innerHTML = paths().concat(parts).join("");
    const height = TOP + (lowest + 2) * row;
    svg.setAttribute("width", width + 4);
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", "0 0 " + (width + 4) + " " + height);
    svg.dataset.frames = shown.length;
    svg.dataset.focus = data.names[data.functions[focus]][0];
  }
  function describe(node) {
    details.textContent = label(node);
  }
  function zoom(node) {
    focus = node;
    current = node;
    describe(node);
    draw();
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
    draw();
  }
  function move(node) {
    if (node < 0 || node === undefined) return;
    current = node;
    if (!shown.includes(node)) focus = data.parents[node] < 0 ? 0 : data.parents[node];
    describe(node);
    draw();
  }
  const nodeOf = (event) => {
    const element = event.target.closest("[data-node]");
    if (element) return Number(element.dataset.node);
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const under = (narrow[Math.floor((place.y - TOP) / row)] || []).find(([, x]) => x <= place.x);
    return under ? under[0] : -1;
  };
  group.addEventListener("click", (event) => { const node = nodeOf(event); if (node >= 0) zoom(node); });
  group.addEventListener("mouseover", (event) => { const node = nodeOf(event); if (node >= 0) describe(node); });
  input.addEventListener("input", () => search(input.value));
  reset.addEventListener("click", () => zoom(0));
  document.addEventListener("keydown", (event) => {
    if (event.target === input) {
      if (event.key === "Escape") { input.value = ""; search(""); input.blur(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowDown: () => move(first[current]),
      ArrowUp: () => { if (current === focus && focus > 0) zoom(data.parents[focus]); else move(data.parents[current]); },
      ArrowRight: () => move(next[current]),
      ArrowLeft: () => move(previous[current]),
      Enter: () => { if (event.target !== reset) zoom(current); },
      Escape: () => zoom(0),
      "/": () => input.focus(),
    };
    if (keys[event.key]) { if (!(event.key === "Enter" && event.target === reset)) event.preventDefault(); keys[event.key](); }
  });
  window.addEventListener("resize", draw);
  document.getElementById("controls").removeAttribute("visibility");
  zoom(0);
})();
