"use strict";
// Draws the charts when they come into view, in the reader's colours; unfolds long tables; zooms into a history.
// Long columns follow this script in the page; they are parsed when they are needed.
(() => {
  const read = (selector) => JSON.parse(document.querySelector(selector).textContent);
  const columns = new Map();
  const column = (number) => {
    if (!columns.has(number)) columns.set(number, read(`[data-column="${number}"]`));
    return columns.get(number);
  };
  const loaded = new Promise((resolve) => {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", resolve);
    else resolve();
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const MOST = 400;
  const AT_ONCE = 500;

  // The same as `thinned` in charts/frame.py, over the visible part.
  const visibleGroups = (detail, from, to) => {
    const chosen = [];
    detail.position.forEach((position, number) => {
      if (position >= from && position <= to) chosen.push(number);
    });
    const subjects = new Set(chosen.map((number) => detail.subject[number])).size;
    const width = Math.ceil((to - from + 1) * subjects / MOST);
    const groups = new Map();
    for (const number of chosen) {
      const of = width <= 1 || chosen.length <= MOST ? number : Math.floor(detail.position[number] / width);
      const key = JSON.stringify([detail.subject[number], of]);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(number);
    }
    return [...groups.values()].map((numbers) => {
      const first = numbers[0], last = numbers[numbers.length - 1];
      const sorted = numbers.map((number) => detail.value[number]).sort((one, other) => one - other);
      const middle = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
      return {
        position: detail.position[first],
        subject: detail.subject[first],
        revision: first === last ? detail.revision[first] : `${detail.revision[first]} to ${detail.revision[last]}`,
        value: middle,
        low: Math.min(...numbers.map((number) => detail.low[number])),
        high: Math.max(...numbers.map((number) => detail.high[number])),
        count: numbers.reduce((sum, number) => sum + detail.count[number], 0),
        of: numbers.length,
      };
    });
  };

  const followZoom = (view, numbers) => {
    let frame = 0;
    view.addSignalListener("part", (_, part) => {
      const ends = part && part.position;
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(async () => {
        await loaded;
        const detail = Object.fromEntries(Object.entries(numbers).map(([name, number]) => [name, column(number)]));
        const last = detail.position[detail.position.length - 1];
        const [from, to] = ends || [0, last];
        view.data("points", visibleGroups(detail, from, to)).runAsync();
      });
    });
  };

  const draw = async (container) => {
    const config = read("#looks")[dark.matches ? "dark" : "light"];
    container.hidden = false;
    if (container.clientWidth < 480) config.legend.columns = 1;
    const spec = { ...read(`[data-spec="${container.dataset.chart}"]`), width: "container", config };
    // A narrow chart has no space for the labels of several changes; a table and the tooltips have them.
    if (container.clientWidth < 480) {
      const crowded = (layer) => layer.mark?.clip === false && (layer.data?.values ?? []).filter((each) => each.rise !== null).length > 2;
      spec.layer = spec.layer && spec.layer.filter((layer) => !crowded(layer));
    }
    const detail = container.dataset.detail && JSON.parse(container.dataset.detail);
    if (detail) {
      const series = spec.layer.find((layer) => layer.data && layer.data.name === "points");
      series.params = [{
        name: "part",
        select: { type: "interval", encodings: ["x"], zoom: "wheel![event.shiftKey]" },
        bind: "scales",
      }];
      // Labels above the chart are not clipped: hide those of positions outside the visible part.
      spec.layer.filter((layer) => layer.mark.clip === false).forEach((layer) => {
        layer.transform = [...layer.transform ?? [], { filter: { param: "part" } }];
      });
    }
    const options = {
      mode: "vega-lite", renderer: "svg", tooltip: { theme: dark.matches ? "dark" : "light" },
      actions: { export: true, source: false, compiled: false, editor: false },
    };
    const shown = await vegaEmbed(container, spec, options);
    if (detail) followZoom(shown.view, detail);
    // One image with its caption for a screen reader: the tables have the values.
    const image = container.querySelector("svg.marks");
    image.setAttribute("role", "img");
    image.setAttribute("aria-label", container.dataset.label);
    image.querySelector("g").setAttribute("aria-hidden", "true");
    container.querySelectorAll("summary").forEach((menu) => menu.setAttribute("aria-label", "Save the chart"));
    const figure = container.closest("figure");
    figure.classList.add("drawn");
    if (!figure.querySelector(".still")) container.classList.add("only");
    figure.querySelectorAll(".hint").forEach((hint) => { hint.hidden = false; });
  };

  const containers = [...document.querySelectorAll("[data-chart]")];
  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const container = entry.target.querySelector("[data-chart]");
      if (entry.isIntersecting && !seen.has(container)) {
        seen.add(container);
        draw(container).catch((error) => { container.hidden = true; console.error(error); });
      }
    }
  }, { rootMargin: "300px" });
  containers.forEach((container) => watcher.observe(container.closest("figure")));
  dark.addEventListener("change", () => seen.forEach((container) => draw(container)));

  const sparkline = (path) => {
    const [drawing, line] = ["svg", "path"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
    drawing.setAttribute("viewBox", "0 0 160 32");
    drawing.setAttribute("aria-hidden", "true");
    line.setAttribute("d", path);
    drawing.append(line);
    return drawing;
  };

  const unfold = (part) => {
    const body = part.querySelector("tbody"), button = part.querySelector(".rest button"), rest = part.querySelector(".rest");
    const tools = part.querySelector(".tools"), input = tools.querySelector("input");
    const kinds = [...part.querySelectorAll("thead th")].map((head) => head.className);
    const first = body.rows.length, rows = Number(part.dataset.rows);
    const texts = () => part.dataset.columns.split(" ").map(column);
    let found = [...Array(rows).keys()], shown = first;
    const fill = (from) => {
      const cells = texts();
      for (const at of found.slice(from, shown)) {
        const row = body.insertRow();
        cells.forEach((column, number) => {
          const cell = row.insertCell();
          cell.className = kinds[number];
          if (kinds[number] === "spark") cell.append(sparkline(column[at]));
          else cell.textContent = column[at];
        });
      }
      const left = Math.max(0, found.length - shown);
      rest.firstChild.textContent = left ? `${left} more row${left === 1 ? "" : "s"} ` : `${found.length} row${found.length === 1 ? "" : "s"} `;
      button.hidden = left === 0;
    };
    let before = null, wanted = "";
    const choose = () => {
      const cells = texts(), text = (at) => (number) => cells[number][at];
      found = [...Array(rows).keys()].filter((at) => cells.some((column) => column[at].toLowerCase().includes(wanted)));
      if (before) found.sort((one, other) => before(text(one), text(other)));
      shown = first;
      body.replaceChildren();
      fill(0);
    };
    button.hidden = tools.hidden = false;
    readingAids.sortable(part.querySelector("table"), (order) => { before = order; choose(); });
    button.addEventListener("click", () => { const from = shown; shown += AT_ONCE; fill(from); });
    input.addEventListener("input", () => { wanted = input.value.toLowerCase(); choose(); });
  };
  loaded.then(() => document.querySelectorAll("[data-columns]").forEach(unfold));
})();
