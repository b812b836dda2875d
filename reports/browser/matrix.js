"use strict";
// The matrix: scenarios by area down, backends across, and the filters above it.

/** Views of the rows that readers ask for by name. Each tells whether a row belongs to it, given the columns shown. */
const PRESETS = {
  disagreements: {
    label: "Disagreements",
    about: "backends that were asked and judged came out differently",
    has: (row, columns) =>
      new Set(columns.map((column) => row.cells[column.place].outcome.word).filter((word) => JUDGED.has(word))).size >
      1,
  },
  odd: {
    label: "Odd one out",
    about: "one backend answered otherwise than all others, who agree",
    has: (row, columns) => columns.some((column) => row.odd.includes(column.place)),
  },
  changed: {
    label: "Changed",
    about: "a verdict is not what it was on the last good night",
    has: (row, columns) => columns.some((column) => row.changes.some((change) => change.column === column.place)),
  },
  flaky: {
    label: "Flaky",
    about: "one build answered differently in different runs",
    has: (row, columns) => columns.some((column) => row.flakes.some((flake) => flake.column === column.place)),
  },
  disputed: {
    label: "Disputed",
    about: report.disputed,
    has: (row) => row.disputed,
  },
};

/** What a state asks for: columns, and rows in groups of an area; those in `calm` wait to be shown. */
function selection(state) {
  const chosen = report.columns.filter((column) => state.backend.includes(column.backend));
  const columns = chosen.length ? chosen : report.columns;
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const preset = Object.hasOwn(PRESETS, state.preset) ? PRESETS[state.preset] : null;
  const matches = (row) =>
    (!state.level.length || state.level.includes(row.level)) &&
    (!state.area.length || state.area.includes(row.area)) &&
    (!preset || preset.has(row, columns)) &&
    (!state.verdict.length ||
      columns.some((column) => state.verdict.includes(row.cells[column.place].outcome.word))) &&
    words.every((word) => searched(row).includes(word));
  // Whoever looks for rows by name, or for those that conform, has not asked to have them folded away.
  const folds = !words.length && !state.verdict.includes("conforms");
  const groups = Map.groupBy(report.rows.filter(matches), (row) => row.area);
  return {
    columns,
    groups: [...groups].map(([area, rows]) => {
      const calm = folds ? rows.filter((row) => row.calm) : [];
      const open = state.open.includes(area);
      return {
        area: report.area(area),
        rows,
        calm,
        open,
        shown: open ? rows : rows.filter((row) => !calm.includes(row)),
      };
    }),
  };
}

function searched(row) {
  row.text ??= [row.scenario, row.title, row.impact, row.area, report.area(row.area).title].join("\n").toLowerCase();
  return row.text;
}

/** The view: controls that are built once, and a table that is built anew whenever it shows something else. */
function matrixView() {
  const filters = filterBar();
  const count = element("p.count", { role: "status" });
  const place = element("div.matrix.scroller", { tabindex: "-1" });
  // The title of an area stays in sight below the headings, however many lines those take.
  const below = new ResizeObserver(([head]) => place.style.setProperty("--head", `${head.target.offsetHeight}px`));
  return {
    element: [
      overview(),
      element(
        "section",
        { "aria-labelledby": "matrix-title" },
        element("h2", { id: "matrix-title" }, "The matrix"),
        filters.element,
        count,
        place,
        legend(),
      ),
    ],
    update(state) {
      filters.update(state);
      const selected = selection(state);
      const total = selected.groups.reduce((sum, group) => sum + group.rows.length, 0);
      const folded = selected.groups.reduce((sum, group) => sum + group.rows.length - group.shown.length, 0);
      count.textContent =
        `${counted(total - folded, "scenario")} shown of ${report.rows.length}` +
        (folded ? `, ${folded} where everybody conforms folded away` : "");
      const unfolding = document.activeElement?.dataset.area;
      place.replaceChildren(
        total
          ? grid(selected)
          : element(
              "p.note",
              "No scenario is like that. ",
              element("button", { type: "button", click: () => go(NO_FILTERS) }, "Show all"),
            ),
      );
      place.style.setProperty("--columns", selected.columns.length);
      if (unfolding)
        [...place.querySelectorAll(".fold")].find((button) => button.dataset.area === unfolding)?.focus();
      below.disconnect();
      if (total) below.observe(place.querySelector("thead"));
    },
  };
}

const NO_FILTERS = { verdict: [], level: [], area: [], backend: [], q: "", preset: "" };

// The filters

function filterBar() {
  const search = searchField();
  const parts = [
    chips(
      "Preset",
      Object.entries(PRESETS).map(([key, preset]) => ({
        key,
        label: preset.label,
        about: preset.about,
        number: report.rows.filter((row) => preset.has(row, report.columns)).length,
      })),
      (state) => [state.preset],
      (key) => go({ preset: state.preset === key ? "" : key }),
    ),
    chips(
      "Verdict",
      presentOutcomes().map((outcome) => ({
        key: outcome.word,
        label: `${outcome.symbol} ${outcome.word}`,
        about: outcome.meaning,
      })),
      (state) => state.verdict,
      (key) => go({ verdict: toggled(state.verdict, key) }),
    ),
    chips(
      "Level",
      report.levels.map((level) => ({ key: level, label: level })),
      (state) => state.level,
      (key) => go({ level: toggled(state.level, key) }),
    ),
    menu(
      "Areas",
      report.areas.map((area) => ({ key: area.key, label: area.title })),
      (state) => state.area,
      (area) => go({ area }),
    ),
    menu(
      "Backends",
      report.columns.map((column) => ({ key: column.backend, label: column.backend })),
      (state) => state.backend,
      (backend) => go({ backend }),
    ),
  ];
  const reset = element("button.quiet", { type: "button", click: () => go(NO_FILTERS) }, "Clear all filters");
  return {
    element: element(
      "div.filters",
      { role: "search", "aria-label": "Filter the matrix" },
      search.element,
      parts.map((part) => part.element),
      reset,
    ),
    update(state) {
      search.update(state);
      for (const part of parts) part.update(state);
      reset.hidden = formatState({ ...state, ...NO_FILTERS }) === formatState(state);
    },
  };
}

function searchField() {
  // A fifth of a second after the last letter: a table of ten thousand cells is not drawn for each.
  let waiting = 0;
  const typed = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => go({ q: input.value.trim() }, { replace: true }), 200);
  };
  const input = element("input", {
    type: "search",
    id: "search",
    placeholder: "Search scenarios",
    "aria-label": "Search scenarios",
    "aria-keyshortcuts": "/",
    autocomplete: "off",
    spellcheck: "false",
    input: typed,
  });
  return {
    element: element("div.search", input, element("kbd", { "aria-hidden": "true" }, "/")),
    update(state) {
      if (document.activeElement !== input) input.value = state.q;
    },
  };
}

/** Buttons that are pressed or not. */
function chips(label, choices, pressed, press) {
  const buttons = choices.map((choice) =>
    element(
      "button.chip",
      { type: "button", title: choice.about, click: () => press(choice.key) },
      choice.label,
      choice.number === undefined ? null : element("span.number", ` ${choice.number}`),
    ),
  );
  return {
    element: element(
      "div.chips",
      { role: "group", "aria-label": label },
      element("span.label", { "aria-hidden": "true" }, label),
      buttons,
    ),
    update(state) {
      buttons.forEach((button, place) =>
        button.setAttribute("aria-pressed", pressed(state).includes(choices[place].key)),
      );
    },
  };
}

/** Boxes to tick, behind a button: there are too many for a row of their own. */
function menu(label, choices, ticked, choose) {
  const boxes = choices.map((choice) => element("input", { type: "checkbox", value: choice.key }));
  const changed = () => choose(boxes.filter((box) => box.checked).map((box) => box.value));
  const summary = element("summary", label);
  const details = element(
    "details.menu",
    {
      change: changed,
      keydown: (event) => {
        if (event.key !== "Escape" || !details.open) return;
        details.open = false;
        summary.focus();
      },
    },
    summary,
    element(
      "fieldset",
      element("legend.unseen", label),
      choices.map((choice, place) => element("label", boxes[place], ` ${choice.label}`)),
    ),
  );
  document.addEventListener("click", (event) => {
    if (!details.contains(event.target)) details.open = false;
  });
  return {
    element: details,
    update(state) {
      const chosen = ticked(state);
      for (const box of boxes) box.checked = chosen.includes(box.value);
      summary.textContent = chosen.length ? `${label}: ${chosen.length} of ${choices.length}` : `${label}: all`;
    },
  };
}

// The table

function grid({ columns, groups }) {
  const stripes = columns.map(() => element("col"));
  const headings = columns.map(heading);
  const body = groups.map((group) =>
    element(
      "tbody",
      groupRow(group, columns.length + 1),
      group.shown.map((row) => gridRow(row, columns)),
    ),
  );
  const made = element(
    "table",
    { role: "grid", "aria-label": "Scenarios by backend", keydown: moveInGrid, click: openCell },
    element("colgroup", element("col"), stripes),
    element("thead", element("tr", element("th", { scope: "col", class: "corner" }, "Scenario"), headings)),
    body,
  );
  const first = made.querySelector("td");
  if (first) first.tabIndex = 0;

  // The cross: the row lights up by itself, the column by its stripe.
  const cross = (event) => {
    const cell = event.target.closest("td");
    const place = cell ? cell.cellIndex - 1 : -1;
    stripes.forEach((stripe, each) => stripe.classList.toggle("crossed", each === place));
    headings.forEach((head, each) => head.classList.toggle("crossed", each === place));
  };
  for (const kind of ["mouseover", "focusin", "mouseleave"]) made.addEventListener(kind, cross);
  return made;
}

function heading(column) {
  const [, name, rest] = column.backend.match(/^([^@(]*)(.*)$/s);
  return element(
    "th",
    { scope: "col", class: "backend" },
    stateLink(
      { view: "brokers", broker: column.backend },
      {},
      element("span.name", name),
      rest && element("span.version", rest),
    ),
    column.oracle && element("span.remark", "oracle"),
    column.status !== "complete" &&
      element(
        "span.remark.warning",
        { title: column.reasons.join("\n") },
        `${column.status === "not run" ? report.outcome("not run").symbol : "…"} ${column.status}`,
        column.reasons.length ? `: ${column.reasons.join("; ")}` : "",
      ),
  );
}

function groupRow(group, width) {
  const { area, rows, calm, open } = group;
  const fold =
    calm.length &&
    element(
      "button.fold",
      {
        type: "button",
        "data-area": area.key,
        "aria-expanded": String(open),
        click: () => go({ open: toggled(state.open, area.key) }),
      },
      element("span", { "aria-hidden": "true" }, report.outcome("conforms").symbol),
      ` ${calm.length === rows.length ? "all " : ""}${calm.length} conform everywhere `,
      element("span.action", open ? "fold" : "show"),
    );
  return element(
    "tr.group",
    element(
      "th",
      { colspan: width, scope: "colgroup" },
      element(
        "div.pinned",
        element("span.title", area.title),
        element("span.number", counted(rows.length, "scenario")),
        fold || null,
      ),
    ),
  );
}

function gridRow(row, columns) {
  return element(
    "tr",
    element(
      "th",
      { scope: "row" },
      element("span.scenario", row.scenario),
      " ",
      element("span", { class: `level ${row.level}` }, row.level),
      row.disputed && element("span.remark.warning", "disputed"),
      element("span.title", row.title),
    ),
    columns.map((column) => gridCell(row, column)),
  );
}

function gridCell(row, column) {
  const { outcome } = row.cells[column.place];
  const notes = remarks(row, column);
  return element(
    "td",
    { class: outcome.key, tabindex: "-1", "data-scenario": row.scenario, "data-backend": column.backend },
    element("span", { "aria-hidden": "true" }, outcome.symbol),
    ` ${outcome.word}`,
    shareText(row.cells[column.place]),
    notes.length ? element("small", notes.join(", ")) : null,
  );
}

/** What is to be said of a cell beside its outcome. */
function remarks(row, column) {
  const change = row.changes.find((each) => each.column === column.place);
  const flake = row.flakes.find((each) => each.column === column.place);
  return [change?.outcome, flake && `flaky ${percent(flake.rate)}`, row.odd.includes(column.place) && "alone"].filter(
    Boolean,
  );
}

function openCell(event) {
  const cell = event.target.closest("td");
  if (cell) go({ cell: { scenario: cell.dataset.scenario, backend: cell.dataset.backend } });
}

/** Arrow keys, as in every grid: one cell of it is in the order of tabs, and that one moves. */
function moveInGrid(event) {
  const cell = event.target.closest("td");
  if (!cell || event.altKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    openCell(event);
    return;
  }
  const rows = [...event.currentTarget.querySelectorAll("tbody tr:not(.group)")];
  const [row, column] = [rows.indexOf(cell.parentElement), cell.cellIndex];
  const last = cell.parentElement.cells.length - 1;
  const target = {
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    PageUp: [Math.max(0, row - 10), column],
    PageDown: [Math.min(rows.length - 1, row + 10), column],
    Home: [event.ctrlKey ? 0 : row, 1],
    End: [event.ctrlKey ? rows.length - 1 : row, last],
  }[event.key];
  if (!target) return;
  event.preventDefault();
  const next = target[1] > 0 ? rows[target[0]]?.cells[target[1]] : null;
  if (next) focusCell(next);
}

function focusCell(cell) {
  cell.closest("table").querySelector('td[tabindex="0"]')?.setAttribute("tabindex", "-1");
  cell.tabIndex = 0;
  cell.focus();
}

/** The cell of the table that a state's drawer is about, if it is shown. */
function shownCell({ scenario, backend }) {
  return [...document.querySelectorAll("table[role=grid] td")].find(
    (cell) => cell.dataset.scenario === scenario && cell.dataset.backend === backend,
  );
}

function legend() {
  const entries = [
    ...presentOutcomes().map((outcome) => [outcomeMark(outcome), outcome.meaning]),
    ["1/3", report.counts],
    ["disputed", report.disputed],
  ];
  const { checks, exchanges } = report.left_out;
  const leftOut = [
    checks && counted(checks, "check"),
    exchanges && `the exchanges of ${counted(exchanges, "check")}`,
  ];
  return element(
    "details.legend",
    { open: true },
    element("summary", "What the words mean"),
    element(
      "dl",
      entries.map(([word, meaning]) => pair(word, meaning)),
    ),
    (checks || exchanges) > 0 &&
      element(
        "p.aside",
        `No room on this page for ${leftOut.filter(Boolean).join(" and ")}; the result files have them.`,
      ),
  );
}

/** The outcomes that this report has, worst first. */
function presentOutcomes() {
  const seen = new Set(report.rows.flatMap((row) => row.cells.map((cell) => cell.outcome)));
  return report.outcomes.filter((outcome) => seen.has(outcome));
}
