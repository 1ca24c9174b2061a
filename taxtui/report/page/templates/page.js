"use strict";
(() => {
  const key = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.sort;
    return value === "" || value === undefined ? cell.textContent.trim() : Number(value);
  };
  const compare = (a, b) =>
    typeof a === typeof b ? (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }))
      : typeof a === "number" ? -1 : 1;
  for (const head of document.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const cell of head.parentNode.cells) cell.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = head.closest("table").tBodies[0];
      const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * compare(key(a, head.cellIndex), key(b, head.cellIndex)));
      body.append(...rows);
    });
  }
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
})();
