"use strict";
// Draws charts when they come into view, in the reader's colours; zooms into a history; reconnects live updates.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();
  const SETTLED_MS = 350;

  const follow = (place, view, told) => {
    let asked = 0;
    view.addSignalListener("part", (_, part) => {
      const ends = part && part.position;
      clearTimeout(asked);
      if (!ends) return;
      asked = setTimeout(() => {
        const within = (position) => Math.max(0, Math.min(told.length - 1, Math.round(position)));
        const first = within(ends[0]), last = within(ends[1]);
        if (first === told.first && last === told.last) return;
        const address = new URL(place.dataset.page, location.href);
        address.searchParams.set("first", first);
        address.searchParams.set("last", last);
        htmx.ajax("GET", address.href, { source: "#part", target: "#part", select: "#part", swap: "outerHTML" })
          .then(() => history.replaceState(null, "", address.href));
      }, SETTLED_MS);
    });
  };

  const draw = async (place) => {
    const address = place.dataset.spec;
    const known = drawn.get(place);
    const answer = known ? known.told : await (await fetch(address, { credentials: "same-origin" })).json();
    if (!place.isConnected) return;
    const looks = structuredClone(answer.looks[dark.matches ? "dark" : "light"]);
    looks.background = "transparent";
    if (place.clientWidth < 480) looks.legend.columns = 1;
    const spec = { ...structuredClone(answer.spec), width: "container", config: looks };
    if (place.dataset.page) {
      const series = spec.layer.find((layer) => layer.data && layer.data.name === "points");
      series.params = [{
        name: "part", bind: "scales",
        select: { type: "interval", encodings: ["x"], zoom: "wheel![event.shiftKey]" },
      }];
    }
    if (known) known.shown.finalize();
    const shown = await vegaEmbed(place, spec, {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
    place.classList.remove("waiting");
    drawn.set(place, { told: answer, shown });
    if (place.dataset.page) follow(place, shown.view, answer);
  };

  const begin = (place) => draw(place).catch((error) => {
    place.classList.remove("waiting");
    place.textContent = "This chart could not be drawn; the table has the same values.";
    console.error(error);
  });

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watcher.unobserve(entry.target);
        begin(entry.target);
      }
    }
  }, { rootMargin: "400px" });

  const look = (root) => {
    for (const place of root.querySelectorAll("[data-spec]")) {
      if (!place.dataset.seen) {
        place.dataset.seen = "yes";
        watcher.observe(place);
      }
    }
    for (const place of drawn.keys()) {
      if (!place.isConnected) {
        drawn.get(place).shown.finalize();
        drawn.delete(place);
      }
    }
  };

  dark.addEventListener("change", () => [...drawn.keys()].forEach(begin));
  document.addEventListener("htmx:afterSettle", () => look(document));
  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-go]")) event.target.form.requestSubmit();
  });
  // redraw the belief of a running search after each step
  document.addEventListener("htmx:sseMessage", () => {
    look(document);
    const newer = document.querySelector("#newer"), taken = document.querySelector(".live [data-taken]");
    if (newer && taken) newer.hidden = newer.dataset.taken === taken.dataset.taken;
    const told = document.querySelector("[data-search]"), place = document.querySelector("#belief");
    if (!told || !place || place.dataset.shown === told.dataset.search) return;
    place.dataset.shown = told.dataset.search;
    place.hidden = false;
    place.dataset.spec = told.dataset.search;
    if (drawn.has(place)) drawn.get(place).shown.finalize();
    drawn.delete(place);
    begin(place);
  });
  // a browser has six connections to a server for all pages: a hidden page closes its connection
  let stream = null;
  const told = (answered) => {
    const lost = document.querySelector("#lost");
    if (lost) lost.hidden = answered;
  };
  document.addEventListener("htmx:sseError", () => told(false));
  document.addEventListener("htmx:sseOpen", (event) => {
    told(true);
    stream = event.detail.source;
    if (document.hidden) stream.close();
  });
  document.addEventListener("visibilitychange", () => {
    const place = document.querySelector("[sse-connect]");
    if (!place || !stream) return;
    if (document.hidden) {
      stream.close();
    } else if (stream.readyState === EventSource.CLOSED) {
      const again = place.cloneNode(true);
      place.replaceWith(again);
      htmx.process(again);
    }
  });
  look(document);
})();
