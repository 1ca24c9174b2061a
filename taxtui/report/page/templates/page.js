"use strict";
(() => {
  const units = { auto: 0, ms: 1e6, s: 1e9, min: 6e10, "h per 1M": 3.6e6 };
  const digits = (value) => (Math.abs(value) >= 999.5 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString());
  const told = [...document.querySelectorAll("[data-ns],[data-low]")].map((line) => [line, line.textContent]);
  const tell = (name) => {
    for (const [line, own] of told) {
      const in_unit = (ns) => digits(ns / units[name]);
      line.textContent = !units[name] ? own
        : line.dataset.ns ? `${in_unit(line.dataset.ns)} ${name}`
        : `(${in_unit(line.dataset.low)}–${in_unit(line.dataset.high)})`;
    }
  };
  const choice = document.createElement("label");
  choice.className = "units";
  choice.append("Times in ");
  const select = document.createElement("select");
  for (const name of Object.keys(units)) select.append(new Option(name, name));
  select.addEventListener("change", () => tell(select.value));
  choice.append(select);
  if (told.length) document.querySelector("nav").append(choice);

  const key = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.sort;
    return value === "" || value === undefined ? cell.textContent.trim() : Number(value);
  };
  const compare = (one, other) =>
    typeof one === typeof other ? (typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true }))
      : typeof one === "number" ? -1 : 1;
  for (const head of document.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = head.closest("table").tBodies[0];
      const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * compare(key(a, head.cellIndex), key(b, head.cellIndex)));
      body.append(...rows);
    });
  }
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
})();
