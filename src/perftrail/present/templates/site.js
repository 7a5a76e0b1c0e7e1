"use strict";
// Filters the metrics, and draws the history of one when it is opened. Reads only the numbers in the page.
(() => {
  const MOST_CHANGES = 6;
  const HEIGHT = 260, TOP = 26, BOTTOM = 34, LEFT = 64, RIGHT = 14;
  const SHAPES = [
    "M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0", "M-3,-3h6v6h-6z", "M0,-4L4,3.5H-4z", "M0,-4.5L4.5,0L0,4.5L-4.5,0z",
    "M-4,-1.3h2.7v-2.7h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7z", "M0,4L4,-3.5H-4z", "M4,0L-3.5,4V-4z",
  ];
  const data = JSON.parse(document.querySelector("#charts").textContent);
  const revisions = new Map(data.revisions.map(([position, ...words]) => [position, words]));
  const table = document.querySelector(".metrics"), tools = document.querySelector("div.tools");
  const rows = [...table.tBodies[0].rows], rest = document.querySelector(".lead .rest");
  const names = rows.map((row) => row.querySelector(".name").textContent);
  const AT_ONCE = Number(table.dataset.atOnce);
  const element = (name, attributes = {}, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };
  const html = (name, text = "", className = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    made.className = className;
    return made;
  };

  // The points of a metric: its values are stored as differences from the value before, in whole steps.
  const pointsOf = (series) => {
    let sum = 0;
    const [positions, counts, machines, lasts] = [series.p, series.n, series.m, series.o ?? series.p].map((at) => data.columns[at]);
    return series.v.map((difference, at) => {
      sum += difference;
      return {
        position: positions[at], last: lasts[at], count: counts[at], machine: machines[at],
        value: sum * series.s, low: (sum - series.l[at]) * series.s, high: (sum + series.h[at]) * series.s,
      };
    }).sort((one, other) => one.position - other.position);
  };
  const niceStep = (span, most) => {
    const power = 10 ** Math.floor(Math.log10(span / most));
    return [1, 2, 5, 10].map((each) => each * power).find((each) => span / each <= most);
  };
  const decimals = (step) => Math.max(0, -Math.floor(Math.log10(step) + 1e-9));

  const draw = (panel, at) => {
    const series = data.series[at], points = pointsOf(series);
    const width = Math.max(280, panel.clientWidth - 24);
    const first = points[0].position, last = points[points.length - 1].last;
    let low = Math.min(...points.map((each) => each.low)), high = Math.max(...points.map((each) => each.high));
    const margin = (high - low) * 0.08 || Math.abs(high) * 0.05 || 1;
    [low, high] = [low - (low >= 0 && low < margin ? low : margin), high + margin];
    const x = (position) => first === last ? (LEFT + width - RIGHT) / 2
      : LEFT + 8 + (position - first) / (last - first) * (width - LEFT - RIGHT - 16);
    const y = (value) => TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM);
    const drawing = element("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, tabindex: "0", role: "img",
      "aria-label": `${names[at]} along the history; the arrow keys read each revision` });
    const step = niceStep(high - low, 5), shown = decimals(step);
    for (let tick = Math.ceil(low / step); tick * step <= high; tick += 1) {
      const height = y(tick * step);
      drawing.append(element("path", { d: `M${LEFT},${height}H${width - RIGHT}`, class: "grid" }),
        element("text", { x: LEFT - 6, y: height + 4, "text-anchor": "end" }, (tick * step).toFixed(shown)));
    }
    drawing.append(element("text", { x: LEFT - 6, y: 14, "text-anchor": "end" }, series.u));
    // Dates or names of a few revisions; a label never crosses an edge.
    const labels = Math.max(2, Math.floor((width - LEFT) / 170));
    const named = [...new Set(Array.from({ length: labels }, (_, number) =>
      points[Math.round(number * (points.length - 1) / (labels - 1))].position))];
    for (const position of named) {
      const [name, date] = revisions.get(position), where = x(position);
      const anchor = position === first && first !== last ? "start" : position >= last - 1 && first !== last ? "end" : "middle";
      const left = anchor === "start" ? where - 4 : anchor === "end" ? where + 4 : where;
      drawing.append(element("text", { x: left, y: HEIGHT - 18, "text-anchor": anchor }, name.split(/[ ,]/, 1)[0]),
        element("text", { x: left, y: HEIGHT - 4, "text-anchor": anchor }, date.slice(0, 10)));
    }
    let free = -Infinity;
    for (const [position, size, word] of series.c ?? []) {
      const where = x(position) - (first === last ? 0 : Math.min(4, (x(last) - x(first)) / (last - first) / 2));
      drawing.append(element("path", { d: `M${where},${TOP - 4}V${HEIGHT - BOTTOM}`, class: `mark ${word}` }));
      const right = where > width - 110;
      const start = right ? where - 4 - 8 * size.length : where + 4;
      if (start > free) {
        drawing.append(element("text", { x: where + (right ? -4 : 4), y: TOP - 8, "text-anchor": right ? "end" : "start", class: word }, `${size}`));
        free = start + 8 * size.length;
      }
    }
    for (const each of points) {
      const where = x((each.position + each.last) / 2), group = element("g", { class: `m${each.machine % SHAPES.length}` });
      group.append(element("path", { d: `M${where},${y(each.low)}V${y(each.high)}`, stroke: "currentColor", "stroke-width": "1.5", opacity: ".55" }),
        element("path", { d: SHAPES[each.machine % SHAPES.length], transform: `translate(${where},${y(each.value)})`, fill: "currentColor" }));
      drawing.append(group);
    }
    const cursor = element("path", { d: "", class: "cursor" }), readout = html("p", "", "readout");
    readout.setAttribute("aria-live", "polite");
    drawing.append(cursor);
    let current = points.length - 1;
    const read = (number) => {
      current = Math.max(0, Math.min(points.length - 1, number));
      const each = points[current], names = [...new Set([each.position, each.last])].map((end) => revisions.get(end));
      const digits = Math.min(8, decimals(series.s)), unit = series.u && ` ${series.u}`;
      const values = [each.value, each.low, each.high].map((value) => value.toFixed(digits));
      const machine = data.machines.length > 1 ? `, on ${data.machines[each.machine]}` : "";
      readout.textContent = `${names.map(([name, date]) => `${name}${date && `, ${date}`}`).join(" to ")}: `
        + `${values[0]}${unit}${each.low === each.high ? "" : ` [${values[1]}, ${values[2]}]`}, ${each.count} sample${each.count === 1 ? "" : "s"}${machine}`;
      cursor.setAttribute("d", `M${x((each.position + each.last) / 2)},${TOP}V${HEIGHT - BOTTOM}`);
    };
    const nearest = (event) => {
      const where = (event.clientX - drawing.getBoundingClientRect().left) * width / drawing.clientWidth;
      const far = points.map((each) => Math.abs(x((each.position + each.last) / 2) - where));
      read(far.indexOf(Math.min(...far)));
    };
    drawing.addEventListener("pointermove", nearest);
    drawing.addEventListener("pointerdown", nearest);
    drawing.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: points.length - 1 };
      if (event.key in moves) { read(moves[event.key]); event.preventDefault(); }
    });
    read(current);
    const figure = html("figure");
    figure.append(drawing, readout);
    const used = [...new Set(points.map((each) => each.machine))];
    if (used.length > 1) {
      const legend = html("ul", "", "legend");
      for (const machine of used) {
        const item = html("li", data.machines[machine]), sign = element("svg", { viewBox: "-6 -6 12 12", class: `m${machine % SHAPES.length}` });
        sign.append(element("path", { d: SHAPES[machine % SHAPES.length], fill: "currentColor" }));
        item.prepend(sign);
        legend.append(item);
      }
      figure.append(legend);
    }
    if (series.c) {
      const list = html("ul");
      list.append(...series.c.slice(-MOST_CHANGES).reverse().map(([, , , words]) => html("li", words)));
      const earlier = series.c.length - MOST_CHANGES;
      if (earlier > 0) list.append(html("li", `and ${earlier} earlier change${earlier === 1 ? "" : "s"}`));
      figure.append(list);
    }
    panel.replaceChildren(figure);
  };

  const panels = new Map();
  const open = (at, wanted) => {
    const row = rows[at], button = row.querySelector("button");
    button.setAttribute("aria-expanded", String(wanted));
    row.classList.toggle("open", wanted);
    if (!wanted) {
      panels.get(at)?.remove();
      panels.delete(at);
      return;
    }
    if (panels.has(at)) return;
    const panel = html("tr", "", "panel"), cell = html("td");
    cell.colSpan = 4;
    panel.append(cell);
    row.after(panel);
    panels.set(at, panel);
    draw(cell, at);
  };
  const address = (at) => `#metric=${encodeURIComponent(names[at])}`;
  rows.forEach((row, at) => {
    const cell = row.querySelector(".name"), button = html("button", names[at]);
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    cell.replaceChildren(button);
    button.addEventListener("click", () => {
      const wanted = button.getAttribute("aria-expanded") === "false";
      open(at, wanted);
      history.replaceState(null, "", wanted ? address(at) : "#metrics");
    });
  });

  let state = "all", every = false;
  const search = tools.querySelector("input"), folded = names.map((name) => name.toLowerCase());
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    rows.forEach((row, at) => {
      const fits = (state === "all" || row.dataset.state === state) && words.every((word) => folded[at].includes(word));
      found += fits;
      row.hidden = !fits || (!every && found > AT_ONCE);
      const panel = panels.get(at);
      if (panel) panel.hidden = row.hidden;
    });
    const more = every ? 0 : Math.max(0, found - AT_ONCE);
    rest.hidden = found > 0 && more === 0;
    rest.querySelector("span").textContent = found ? `${more} more metric${more === 1 ? "" : "s"}` : "No metric fits.";
    rest.querySelector("button").hidden = more === 0;
  };
  search.addEventListener("input", show);
  rest.querySelector("button").addEventListener("click", () => { every = true; show(); });
  const chips = [...tools.querySelectorAll(".chips button")];
  chips.forEach((chip) => chip.addEventListener("click", () => {
    state = chip.dataset.state;
    chips.forEach((each) => each.setAttribute("aria-pressed", String(each === chip)));
    show();
  }));
  const follow = () => {
    if (!location.hash.startsWith("#metric=")) return;
    let wanted = "";
    try { wanted = decodeURIComponent(location.hash.slice("#metric=".length)); } catch { return; }
    const at = names.indexOf(wanted);
    if (at < 0) return;
    if (rows[at].hidden) { every = true; show(); }
    open(at, true);
    rows[at].scrollIntoView({ block: "center" });
  };
  tools.hidden = false;
  show();
  follow();
  addEventListener("hashchange", follow);
  let frame = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => panels.forEach((panel, at) => draw(panel.firstChild, at)));
  });
})();
