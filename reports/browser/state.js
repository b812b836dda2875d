"use strict";
// What the reader sees, as the part of the address after #: a link shows the same, and Back goes back.

const VIEWS = {
  matrix: "By scenario",
  brokers: "By broker",
  profiles: "By profile",
  alike: "Who answers alike",
  trends: "Trends",
};

const LISTS = ["verdict", "level", "area", "backend", "open"];
const TEXTS = ["q", "preset", "broker", "profile"];

function parseState(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const view = given.get("view");
  return {
    view: Object.hasOwn(VIEWS, view) ? view : "matrix",
    ...Object.fromEntries(LISTS.map((name) => [name, given.getAll(name)])),
    ...Object.fromEntries(TEXTS.map((name) => [name, given.get(name) ?? ""])),
    cell: given.has("cell") && given.has("on") ? { scenario: given.get("cell"), backend: given.get("on") } : null,
  };
}

/** The shortest address: what is as it always is stays out. */
function formatState(state) {
  const said = new URLSearchParams();
  if (state.view !== "matrix") said.set("view", state.view);
  for (const name of LISTS) for (const value of state[name]) said.append(name, value);
  for (const name of TEXTS) if (state[name]) said.set(name, state[name]);
  if (state.cell) {
    said.set("cell", state.cell.scenario);
    said.set("on", state.cell.backend);
  }
  return `#${said}`;
}

let state = parseState(location.hash);

/** The address of the state with some of it changed. */
function address(changes) {
  return formatState({ ...state, ...changes });
}

/** Move on. What is typed replaces the address instead of adding to it: Back should not go letter by letter. */
function go(changes, { replace = false } = {}) {
  const next = address(changes);
  if (next === formatState(state)) return;
  history[replace ? "replaceState" : "pushState"](null, "", next);
  follow();
}

/** A link to the state with some of it changed: as it is when the link is followed, not when it was made. */
function stateLink(changes, attributes, ...content) {
  const follow = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own
    event.preventDefault();
    go(changes);
  };
  return element("a", { ...attributes, href: address(changes), click: follow }, ...content);
}

/** Show what the address says. */
function follow() {
  state = parseState(location.hash);
  show(state);
}

/** The list with the value in it, or without it if it was. */
function toggled(list, value) {
  return list.includes(value) ? list.filter((each) => each !== value) : [...list, value];
}
