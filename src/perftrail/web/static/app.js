"use strict";
// Draws charts when they come into view, in the reader's colours; zooms into a history; reconnects live updates.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();
  const SETTLED_MS = 350;

  const followZoom = (container, view, answer) => {
    let timer = 0;
    view.addSignalListener("part", (_, part) => {
      const ends = part && part.position;
      clearTimeout(timer);
      if (!ends) return;
      timer = setTimeout(() => {
        const within = (position) => Math.max(0, Math.min(answer.length - 1, Math.round(position)));
        const first = within(ends[0]), last = within(ends[1]);
        if (first === answer.first && last === answer.last) return;
        const address = new URL(container.dataset.page, location.href);
        address.searchParams.set("first", first);
        address.searchParams.set("last", last);
        htmx.ajax("GET", address.href, { source: "#part", target: "#part", select: "#part", swap: "outerHTML" })
          .then(() => history.replaceState(null, "", address.href));
      }, SETTLED_MS);
    });
  };

  const draw = async (container) => {
    const address = container.dataset.spec;
    const known = drawn.get(container);
    const answer = known ? known.answer : await (await fetch(address, { credentials: "same-origin" })).json();
    if (!container.isConnected) return;
    const config = structuredClone(answer.looks[dark.matches ? "dark" : "light"]);
    config.background = "transparent";
    if (container.clientWidth < 480) config.legend.columns = 1;
    const spec = { ...structuredClone(answer.spec), width: "container", config };
    // A narrow chart has no space for the labels of several changes; a table and the tooltips have them.
    if (container.clientWidth < 480) {
      const crowded = (layer) => layer.mark?.clip === false && (layer.data?.values ?? []).filter((each) => each.rise !== null).length > 2;
      spec.layer = spec.layer && spec.layer.filter((layer) => !crowded(layer));
    }
    if (container.dataset.page) {
      const series = spec.layer.find((layer) => layer.data && layer.data.name === "points");
      series.params = [{
        name: "part", bind: "scales",
        select: { type: "interval", encodings: ["x"], zoom: "wheel![event.shiftKey]" },
      }];
    }
    if (known) known.shown.finalize();
    const shown = await vegaEmbed(container, spec, {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
    // The container is one image with its caption for a screen reader: the tables have the values.
    container.querySelector("svg.marks").setAttribute("aria-hidden", "true");
    container.classList.remove("waiting");
    drawn.set(container, { answer, shown });
    if (container.dataset.page) followZoom(container, shown.view, answer);
  };

  const drawOrExplain = (container) => draw(container).catch((error) => {
    container.classList.remove("waiting");
    container.textContent = "This chart could not be drawn; the table has the same values.";
    console.error(error);
  });

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watcher.unobserve(entry.target);
        drawOrExplain(entry.target);
      }
    }
  }, { rootMargin: "400px" });

  const watchCharts = (root) => {
    for (const container of root.querySelectorAll("[data-spec]")) {
      if (!container.dataset.seen) {
        container.dataset.seen = "yes";
        watcher.observe(container);
      }
    }
    for (const container of drawn.keys()) {
      if (!container.isConnected) {
        drawn.get(container).shown.finalize();
        drawn.delete(container);
      }
    }
  };

  dark.addEventListener("change", () => [...drawn.keys()].forEach(drawOrExplain));
  document.addEventListener("htmx:afterSettle", () => watchCharts(document));
  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-go]")) event.target.form.requestSubmit();
  });
  // redraw the belief of a running search after each step
  document.addEventListener("htmx:sseMessage", () => {
    watchCharts(document);
    const newer = document.querySelector("#newer"), current = document.querySelector(".live [data-taken]");
    if (newer && current) newer.hidden = newer.dataset.taken === current.dataset.taken;
    const search = document.querySelector("[data-search]"), container = document.querySelector("#belief");
    if (!search || !container || container.dataset.shown === search.dataset.search) return;
    container.dataset.shown = search.dataset.search;
    container.hidden = false;
    container.dataset.spec = search.dataset.search;
    if (drawn.has(container)) drawn.get(container).shown.finalize();
    drawn.delete(container);
    drawOrExplain(container);
  });
  // a browser has six connections to a server for all pages: a hidden page closes its connection
  let stream = null;
  const showConnection = (connected) => {
    const lost = document.querySelector("#lost");
    if (lost) lost.hidden = connected;
  };
  document.addEventListener("htmx:sseError", () => showConnection(false));
  document.addEventListener("htmx:sseOpen", (event) => {
    showConnection(true);
    stream = event.detail.source;
    if (document.hidden) stream.close();
  });
  document.addEventListener("visibilitychange", () => {
    const element = document.querySelector("[sse-connect]");
    if (!element || !stream) return;
    if (document.hidden) {
      stream.close();
    } else if (stream.readyState === EventSource.CLOSED) {
      const renewed = element.cloneNode(true);
      element.replaceWith(renewed);
      htmx.process(renewed);
    }
  });
  watchCharts(document);
})();
