"use strict";
// The frame around the views, and the keys that work everywhere.

const MAKERS = {
  matrix: matrixView,
  brokers: brokersView,
  profiles: profilesView,
  alike: alikeView,
  trends: trendsView,
};

/** What is drawn: a view, and of which state. A drawer that opens over it leaves it, and the focus in it, alone. */
const current = { name: "", view: null, state: "" };

function show(next) {
  if (next.view !== current.name) {
    const view = MAKERS[next.view]();
    document.getElementById("main").replaceChildren(...[view.element].flat(Infinity).filter(Boolean));
    if (current.name) scrollTo(0, 0);
    Object.assign(current, { name: next.view, view, state: "" });
  }
  const behind = formatState({ ...next, cell: null });
  if (behind !== current.state) {
    current.state = behind;
    current.view.update(next);
  }
  for (const link of document.querySelectorAll("#top nav a")) {
    if (link.dataset.view === next.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = next.view === "matrix" ? "Offset conformance" : `${VIEWS[next.view]} – Offset conformance`;
  updateDrawer(next);
}

function buildTop() {
  const newest = report.columns
    .map((column) => column.started)
    .filter(Boolean)
    .toSorted()
    .at(-1);
  document.getElementById("top").replaceChildren(
    element(
      "div.masthead",
      element("h1", "Offset conformance"),
      element("p", report.summary, newest ? `; newest run ${moment(newest)} UTC` : ""),
      element(
        "div.tools",
        element("button", { type: "button", id: "theme", click: nextTheme }),
        element(
          "button",
          { type: "button", "aria-keyshortcuts": "?", click: showKeys },
          "Keys",
          element("kbd", { "aria-hidden": "true" }, "?"),
        ),
      ),
    ),
    element(
      "nav",
      { "aria-label": "Views" },
      Object.entries(VIEWS).map(([key, label]) => stateLink({ view: key }, { "data-view": key }, label)),
    ),
    ...[
      report.malformed,
      report.history?.left_out &&
        `${counted(report.history.left_out, "row")} of history had no room on this page; report.json has them`,
    ]
      .filter(Boolean)
      .map((text) => element("p.note", text)),
  );
}

// Light and dark

const THEMES = ["auto", "light", "dark"];

function theme() {
  try {
    return THEMES.find((each) => each === localStorage.getItem("theme")) ?? "auto";
  } catch {
    return document.documentElement.dataset.theme ?? "auto"; // no storage for pages from disk
  }
}

function setTheme(chosen) {
  document.documentElement.dataset.theme = chosen;
  document.getElementById("theme").textContent = `Theme: ${chosen}`;
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  try {
    localStorage.setItem("theme", next);
  } catch {
    // it holds for this page, and is forgotten with it
  }
  setTheme(next);
}

// Keys

const KEYS = [
  ["/", "search"],
  ["← → ↑ ↓", "move in the matrix; Home and End, with Ctrl for the whole of it, Page up and Page down"],
  ["Enter", "open the cell"],
  ["Esc", "close what is open"],
  ["1 – 5", "the views, as they stand at the top"],
  ["?", "these keys"],
];

function showKeys() {
  const dialog = document.getElementById("keys");
  dialog.replaceChildren(
    element("h2", { id: "keys-title" }, "Keys"),
    element(
      "dl",
      KEYS.map(([key, does]) => element("div", element("dt", element("kbd", key)), element("dd", does))),
    ),
    element("button", { type: "button", click: () => dialog.close() }, "Close"),
  );
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  if (typing || event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
  const views = Object.keys(VIEWS);
  if (event.key === "/") {
    event.preventDefault();
    if (state.view !== "matrix") go({ view: "matrix" });
    document.getElementById("search").focus();
  } else if (event.key === "?") showKeys();
  else if (/^[1-9]$/.test(event.key) && views[event.key - 1]) go({ view: views[event.key - 1] });
});

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // what stands after # is the state
  document.getElementById("main").focus();
});

addEventListener("popstate", follow);
buildTop();
setTheme(theme());
show(state);
