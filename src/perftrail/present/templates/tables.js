"use strict";
// Sorts tables by a column with a button in each heading, finds rows of a text, and copies commands. No page needs it.
const readingAids = (() => {
  const UNITS = {
    ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
  };
  const LONG = 15;

  // The number at the start of a text, with its unit; less than something is negative.
  const size = (text) => {
    const found = /^([+−-]?)[\s×]*([\d,]*\.?\d+(?:e[+−-]?\d+)?)\s*([a-zA-Zµ]*)/.exec(text.trim());
    if (!found) return NaN;
    const value = Number(found[2].replaceAll(",", "").replace("−", "-")) * (UNITS[found[3]] ?? 1);
    return found[1] === "−" || found[1] === "-" || / less\b/.test(text) ? -value : value;
  };

  // Compare two texts of a column; a text without a number is after all numbers.
  const compare = (one, other, numbers) => {
    if (!numbers) return one.localeCompare(other, undefined, { numeric: true });
    const [first, second] = [size(one), size(other)];
    if (Number.isNaN(first) || Number.isNaN(second)) return Number.isNaN(first) - Number.isNaN(second);
    return first - second;
  };

  // Add a button to each heading. It calls `reorder(before)`: `before` compares two rows by their texts, or is null.
  const sortable = (table, reorder) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (!head.textContent.trim() || head.classList.contains("spark")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort") || "none"];
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        if (next === "none") return reorder(null);
        head.setAttribute("aria-sort", next);
        const numbers = head.classList.contains("number"), sign = next === "ascending" ? 1 : -1;
        return reorder((one, other) => sign * compare(one(column), other(column), numbers));
      });
    });
  };

  // Sort the rows of a table that has all of them. A row with an empty first cell belongs to the row before it.
  const whole = (table) => {
    const body = table.tBodies[0], rows = body ? [...body.rows] : [];
    if (table.dataset.sorts || rows.length < 3 || rows.some((row) => row.cells[0].colSpan > 1 || !row.cells[0].textContent.trim())) return;
    table.dataset.sorts = "yes";
    const text = (row) => (column) => (row.cells[column] ? row.cells[column].textContent : "");
    sortable(table, (before) => body.append(...(before ? [...rows].sort((one, other) => before(text(one), text(other))) : rows)));
    if (rows.length > LONG) find(table, rows);
  };

  const find = (table, rows) => {
    const line = document.createElement("p"), label = document.createElement("label"), input = document.createElement("input");
    line.className = "tools";
    input.type = "search";
    input.placeholder = `in ${rows.length} rows`;
    label.append("Find ", input);
    line.append(label);
    (table.closest(".wide") || table).before(line);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  };

  const copyable = (block) => {
    if (block.dataset.copies) return;
    block.dataset.copies = "yes";
    const text = block.querySelector("pre"), button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  };

  const all = (root) => {
    root.querySelectorAll("table[data-whole]").forEach(whole);
    root.querySelectorAll(".copyable").forEach(copyable);
  };
  return { all, sortable };
})();
document.addEventListener("DOMContentLoaded", () => readingAids.all(document));
document.addEventListener("htmx:afterSettle", () => readingAids.all(document));
