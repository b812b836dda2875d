"use strict";
// One cell, with everything that is known about it: why it is asked, what came, who says so, and how to ask again.

const drawer = document.getElementById("drawer");

/** What had the focus when the drawer opened, and gets it back. */
let opener = null;

function updateDrawer({ cell }) {
  const row = cell && report.row(cell.scenario);
  const column = cell && report.column(cell.backend);
  if (!row || !column) {
    closeDrawer();
    return;
  }
  drawer.replaceChildren(...drawerContent(row, column));
  if (!drawer.open) {
    opener = document.activeElement;
    drawer.showModal();
  }
  drawer.scrollTop = 0;
  drawer.querySelector("h2").focus();
}

function closeDrawer() {
  if (!drawer.open) return;
  const { scenario, backend } = drawer.querySelector("h2").dataset;
  drawer.close();
  const cell = shownCell({ scenario, backend });
  if (cell) focusCell(cell);
  else if (opener?.isConnected) opener.focus();
}

drawer.addEventListener("cancel", (event) => {
  event.preventDefault(); // the address says whether it is open
  go({ cell: null });
});
drawer.addEventListener("click", (event) => {
  if (event.target === drawer) go({ cell: null });
});

function drawerContent(row, column) {
  const checks = report.checks(row, column);
  const cell = row.cells[column.place];
  const worst = checks.find((check) => check.outcome === cell.outcome);
  const sources = [...new Set(checks.flatMap((check) => check.sources))];
  const flags = [row.disputed && "disputed", ...remarks(row, column)].filter(Boolean);
  return [
    element("div", { class: "head" },
      element("p", { class: "path" }, report.area(row.area).title, " on ", element("strong", {}, column.backend)),
      element("h2", { id: "drawer-title", tabindex: "-1", "data-scenario": row.scenario, "data-backend": column.backend }, row.title),
      element("p", { class: "facts" }, element("code", {}, row.scenario), element("span", { class: `level ${row.level}` }, row.level),
        outcomeMark(cell.outcome, cell.agreeing < cell.checks ? ` ${cell.agreeing}/${cell.checks}` : ""),
        flags.map((flag) => element("span", { class: "remark warning" }, flag))),
      element("button", { type: "button", class: "close", "aria-label": "Close", click: () => go({ cell: null }) }, "✕")),
    element("section", {},
      row.impact && [element("h3", {}, "What a wrong answer does"), element("p", { class: "impact" }, row.impact)],
      sources.length > 0 && [element("h3", {}, "Where it is written"),
        element("ul", { class: "sources" }, sources.map((source) => element("li", {}, source)))],
      row.disputed && element("p", { class: "note" }, `Disputed: ${report.disputed}.`)),
    element("section", {},
      element("h3", {}, checks.length === 1 ? "The check" : `The ${checks.length} checks, as they were asked`),
      checks.length ? checks.map((check) => checkPart(check, checks, column, check === worst)) : noChecks(cell, column)),
    element("section", {}, element("h3", {}, "History of this cell"), cellHistory(row, column)),
    checks.length > 0 && element("section", {}, element("h3", {}, "Ask again"),
      [...new Set(checks.map((check) => reproduce(check, column)))].map((command) => copyable("Reproduce", command)),
      element("p", { class: "aside" }, "Everything that was kept of this cell, every byte of it:"),
      copyable("Show", `offsets show ${column.run} ${quoted(row.scenario)} ${quoted(column.backend)}`)),
    checks.length > 0 && cell.outcome.word !== "conforms" && element("section", {}, element("h3", {}, "If it is known: an entry for the baseline"),
      element("p", { class: "aside" }, `For baselines/${column.family}.toml; give the cause in reason, and where it is reported in bug.`),
      copyable("Baseline entry", baselineEntry(row, cell, checks))),
  ].filter(Boolean);
}

function noChecks(cell, column) {
  const why = column.reasons.join("; ");
  const left = report.left_out.checks ? ` ${counted(report.left_out.checks, "check")} had no room on this page; the result files have them.` : "";
  return element("p", { class: "note" }, `${cell.outcome.symbol} ${cell.outcome.word}: ${why || cell.outcome.meaning}.${cell.checks ? left : ""}`);
}

function checkPart(check, checks, column, open) {
  const body = () => [
    element("dl", { class: "answers" },
      check.reason && pair(check.outcome.word === "conforms" ? "remark" : "because", check.reason),
      check.asked && pair("asked", element("code", {}, check.asked)),
      check.accepted.length > 0 && pair("accepted", check.accepted.map((each) => element("code", {}, each))),
      pair("observed", answerText(check.observed, check.reason)),
      check.oracle && check.oracle !== column.backend && pair("Apache Kafka", [answerText(check.oracleObserved), element("span", { class: "aside" }, ` ${check.oracle}, same run`)])),
    axisPicture(check, checks, column.backend),
    wire(check),
  ];
  const summary = [outcomeMark(check.outcome), check.legal && element("span", { class: "remark" }, "legal, not exactly Kafka"),
    element("span", { class: "question" }, question(check)), element("span", { class: "duration" }, `${check.ms} ms`)];
  return unfolding(summary, body, { class: `check ${check.outcome.key}`, open });
}

function pair(name, value) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, value));
}

/** An answer field by field; those that the reason blames stand out. */
function answerText(answer, reason = "") {
  if (!answer) return element("span", { class: "aside" }, "no answer");
  return element("code", {}, answer.map(([name, value], place) => {
    const text = name ? `${name}=${value}` : value;
    const blamed = name && reason.split(", ").some((part) => part.startsWith(`${name} is `));
    return [place ? " " : "", blamed ? element("mark", {}, text) : text];
  }));
}

function wire(check) {
  if (!check.exchanged) return null;
  if (!check.exchanges.length) {
    return element("p", { class: "aside" }, `${counted(check.exchanged, "exchange")} on the wire had no room on this page; offsets show has them.`);
  }
  const more = check.exchanged - check.exchanges.length;
  return element("details", { class: "wire" }, element("summary", {}, "On the wire", more > 0 && element("span", { class: "aside" }, ` the last ${check.exchanges.length} of ${check.exchanged}, the question last`)),
    check.exchanges.map((exchange) => element("div", { class: "exchange" },
      element("p", {}, element("strong", {}, `${exchange.api} v${exchange.version}`), ` to ${exchange.node}, ${exchange.ms} ms`),
      element("pre", { class: "request", tabindex: "0", "aria-label": "request" }, exchange.request),
      element("pre", { class: "response", tabindex: "0", "aria-label": "response" }, exchange.response))));
}

function cellHistory(row, column) {
  const told = report.history;
  if (!told) return noHistory();
  const mine = (each) => each.scenario === row.scenario && each.backend === column.backend;
  const seen = told.deviations.filter(mine);
  const flakes = told.flakes.filter(mine);
  const sightings = told.sightings.filter(mine);
  const changes = row.changes.filter((change) => change.column === column.place);
  const nights = told.nights.filter((night) => night.backend === column.backend).length;
  if (![sightings, changes, seen, flakes].some((each) => each.length)) {
    return element("p", {}, `Always answered alike, and never wrongly, in the ${counted(nights, "night")} that history shows of ${column.backend}.`);
  }
  return [
    changes.length > 0 && element("ul", {}, changes.map((change) => element("li", {}, element("strong", {}, change.outcome), ` ${change.check}: ${change.before} → ${change.after}`,
      change.moved.length ? `; moved: ${change.moved.join(", ")}` : "; nothing that a run records has moved"))),
    seen.length > 0 && element("ul", {}, seen.map((each) => element("li", {}, `${each.check} deviated in ${each.deviating} of ${counted(each.runs, "run")}, first ${moment(each.first)}`,
      each.first_build ? ` with ${each.first_build}` : "", each.still ? ", and still does" : `, last ${moment(each.last)}`))),
    flakes.length > 0 && element("ul", {}, flakes.map((flake) => element("li", {},
      `${flake.check} is flaky: ${flake.odd} of ${counted(flake.runs, "run")} were unlike the others, ${percent(flake.rate)} (${percent(flake.low)} to ${percent(flake.high)} with 95 % confidence): ${flake.verdicts.join(", ")}`))),
    sightings.length > 0 && table("Sightings of this cell", ["check", "verdict", "version or build", "runs", "first seen", "last seen"],
      sightings.map((each) => [element("code", {}, each.check.slice(each.check.indexOf(":") + 1)), outcomeMark(report.outcome(each.verdict)),
        each.version || each.build, each.runs, moment(each.first), moment(each.last)])),
  ];
}

function noHistory() {
  return element("p", { class: "aside" }, "There is no history yet. ", element("code", {}, "offsets nightly"), " keeps one, and so does ",
    element("code", {}, "offsets report out/results --history out/history"), ".");
}

/** The command that asks the same question again. */
function reproduce(check, column) {
  const node = quoted(check.test.split("[")[0], true);
  const external = column.backend.match(/^external\((.*)\)$/s);
  return `pytest ${node} ${external ? `--bootstrap ${quoted(external[1])}` : `--backend ${quoted(column.backend)}`}`;
}

/** A word for a shell, in quotes where it needs them. */
function quoted(text, always = false) {
  return !always && /^[\w@.,:/+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** An entry as `offsets baseline write` would propose it: the scenario, or those of its checks that came out that way. */
function baselineEntry(row, cell, checks) {
  const alike = checks.filter((check) => check.outcome === cell.outcome);
  const ids = alike.length === checks.length ? [row.scenario] : alike.map((check) => check.id);
  const flaky = cell.outcome.word === "conforms";
  return [
    "[[known]]",
    `verdict = ${JSON.stringify(flaky ? "flaky" : cell.outcome.word)}`,
    ...(cell.outcome.word === "deviates" ? ['bug = ""'] : []),
    `reason = ${JSON.stringify(alike[0].reason.slice(0, 200))}`,
    "ids = [",
    ...ids.map((id) => `    ${JSON.stringify(id)},`),
    "]",
    "",
  ].join("\n");
}
