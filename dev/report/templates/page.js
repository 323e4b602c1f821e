// SPDX-License-Identifier: Apache-2.0
// Filters lists, sorts tables, copies commands. The page says everything without it.
"use strict";
{
  const all = (query, from = document) => [...from.querySelectorAll(query)];
  const make = (name, text, properties) => Object.assign(document.createElement(name), { textContent: text }, properties);

  // A filter shows the rows that contain a text, and opens the folds that have one.
  for (const tool of all(".tool")) {
    const list = document.getElementById(tool.dataset.for);
    const [input, said] = [tool.querySelector("input"), tool.querySelector("[role=status]")];
    const folds = all(":scope .fold", list);
    const before = new Map(folds.map((fold) => [fold, fold.open]));
    const texts = new Map(all("tbody tr", list).map((row) => [row, `${row.dataset.group ?? ""} ${row.textContent}`.toLowerCase()]));
    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = 0;
      for (const [row, text] of texts) {
        row.hidden = !words.every((word) => text.includes(word));
        found += !row.hidden;
      }
      for (const fold of folds) {
        const any = all("tbody tr", fold).some((row) => !row.hidden);
        fold.hidden = !any;
        fold.open = words.length ? any : before.get(fold);
      }
      for (const part of all(".part", list)) part.hidden = all(".fold", part).every((fold) => fold.hidden);
      said.textContent = words.length ? `${found} of ${texts.size} lines` : "";
    };
    let wait = 0;
    input.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(filter, 120); });
    const toggle = tool.querySelector("button");
    toggle.addEventListener("click", () => {
      const open = folds.some((fold) => !fold.hidden && !fold.open);
      for (const fold of folds) if (!fold.hidden) fold.open = open;
      toggle.textContent = open ? "Close all" : "Open all";
    });
    tool.hidden = false;
  }

  // A click on the head of a column sorts by it: numbers as numbers, the rest as text.
  const value = (row, column) => {
    const cell = row.cells[column];
    const text = (cell.dataset.value ?? cell.textContent).trim();
    const number = Number.parseFloat(text.replaceAll(",", "").replace("\u2212", "-"));
    return Number.isNaN(number) || /^[a-z]/i.test(text) ? text : number;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  for (const table of all("table.sort")) {
    const heads = all("thead th", table);
    heads.forEach((head, column) => {
      const button = make("button", head.textContent, { type: "button" });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const first = head.classList.contains("n") ? "descending" : "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        for (const one of heads) one.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order);
        const rows = [...table.tBodies[0].rows].map((row) => [value(row, column), row]);
        rows.sort(([a], [b]) => (order === "ascending" ? compare(a, b) : compare(b, a)));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }

  // A command is copied by its button; where the browser refuses, it is selected.
  for (const code of all("code.command")) {
    const button = make("button", "Copy", { type: "button", className: "copy" });
    button.setAttribute("aria-label", `Copy: ${code.textContent}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    code.after(button);
  }

  // Only a box that scrolls is worth a stop of the Tab key.
  const boxes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const scrolls = target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight;
      if (scrolls) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const box of all(".scroll, pre")) boxes.observe(box);

  // A link into a closed fold opens it.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
}
