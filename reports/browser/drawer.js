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
  return [
    headPart(row, column),
    aboutPart(row, checks),
    checksPart(row, column, checks),
    element("section", element("h3", "History of this cell"), cellHistory(row, column)),
    checks.length > 0 && againPart(row, column, checks),
    baselinePart(row, column, checks),
  ].filter(Boolean);
}

function headPart(row, column) {
  const cell = row.cells[column.place];
  const flags = [row.disputed && "disputed", ...remarks(row, column)].filter(Boolean);
  const about = { "data-scenario": row.scenario, "data-backend": column.backend };
  return element(
    "div.head",
    element("p.path", report.area(row.area).title, " on ", element("strong", column.backend)),
    element("h2", { id: "drawer-title", tabindex: "-1", ...about }, row.title),
    element(
      "p.facts",
      element("code", row.scenario),
      element("span", { class: `level ${row.level}` }, row.level),
      outcomeMark(cell.outcome, shareText(cell)),
      flags.map((flag) => element("span.remark.warning", flag)),
    ),
    element("button.close", { type: "button", "aria-label": "Close", click: () => go({ cell: null }) }, "✕"),
  );
}

function aboutPart(row, checks) {
  const sources = [...new Set(checks.flatMap((check) => check.sources))].map((source) => element("li", source));
  return element(
    "section",
    row.impact && [element("h3", "What a wrong answer does"), element("p.impact", row.impact)],
    sources.length > 0 && [element("h3", "Where it is written"), element("ul.sources", sources)],
    row.disputed && element("p.note", `Disputed: ${report.disputed}.`),
  );
}

function checksPart(row, column, checks) {
  const cell = row.cells[column.place];
  const worst = checks.find((check) => check.outcome === cell.outcome);
  const title = checks.length === 1 ? "The check" : `The ${checks.length} checks, as they were asked`;
  return element(
    "section",
    element("h3", checks.length ? title : "No check"),
    checks.map((check) => checkPart(check, checks, column, check === worst)),
    !checks.length && noChecks(cell, column),
  );
}

function againPart(row, column, checks) {
  const commands = [...new Set(checks.map((check) => reproduce(check, column)))];
  return element(
    "section",
    element("h3", "Ask again"),
    commands.map((command) => copyable("Reproduce", command)),
    element("p.aside", "Everything that was kept of this cell:"),
    copyable("Show", `offsets show ${quoted(column.run)} ${quoted(row.scenario)} ${quoted(column.backend)}`),
  );
}

/** For what is known to be so: an entry to put into the backend's baseline. What conforms needs none. */
function baselinePart(row, column, checks) {
  const entry = baselineEntry(row, column, checks);
  if (!entry) return null;
  const advice = `For baselines/${column.family}.toml; give the cause in reason, and where it is reported in bug.`;
  return element(
    "section",
    element("h3", "If it is known: an entry for the baseline"),
    element("p.aside", advice),
    copyable("Baseline entry", entry),
  );
}

function noChecks(cell, column) {
  const why = column.reasons.join("; ");
  const left = report.left_out.checks
    ? ` ${counted(report.left_out.checks, "check")} had no room on this page; the result files have them.`
    : "";
  return element(
    "p.note",
    `${cell.outcome.symbol} ${cell.outcome.word}: ${why || cell.outcome.meaning}.${cell.checks ? left : ""}`,
  );
}

function checkPart(check, checks, column, open) {
  const body = () => [
    element(
      "dl.answers",
      check.reason && pair(check.outcome.word === "conforms" ? "remark" : "because", check.reason),
      check.asked && pair("asked", element("code", check.asked)),
      check.accepted.length > 0 &&
        pair(
          "accepted",
          check.accepted.map((each) => element("code", each)),
        ),
      pair("observed", answerText(check.observed, check.reason)),
      check.oracle &&
        check.oracle !== column.backend &&
        pair("Apache Kafka", [answerText(check.oracleObserved), element("span.aside", ` ${check.oracle}, same run`)]),
    ),
    axisPicture(check, checks, column.backend),
    wire(check),
  ];
  const summary = [
    outcomeMark(check.outcome),
    check.legal && element("span.remark", "legal, not exactly Kafka"),
    element("span.question", question(check)),
    element("span.duration", `${check.ms} ms`),
  ];
  return unfolding(summary, body, { class: `check ${check.outcome.key}`, open });
}

/** An answer field by field; those that the reason blames stand out. */
function answerText(answer, reason = "") {
  if (!answer) return element("span.aside", "no answer");
  return element(
    "code",
    answer.map(([name, value], place) => {
      const text = name ? `${name}=${value}` : value;
      const blamed = name && reason.split(", ").some((part) => part.startsWith(`${name} is `));
      return [place ? " " : "", blamed ? element("mark", text) : text];
    }),
  );
}

function wire(check) {
  if (!check.exchanged) return null;
  if (!check.exchanges.length) {
    return element(
      "p.aside",
      `${counted(check.exchanged, "exchange")} on the wire had no room on this page; offsets show has them.`,
    );
  }
  const more = check.exchanged - check.exchanges.length;
  return element(
    "details.wire",
    element(
      "summary",
      "On the wire",
      more > 0 &&
        element("span.aside", ` the last ${check.exchanges.length} of ${check.exchanged}, the question last`),
    ),
    check.exchanges.map((exchange) =>
      element(
        "div.exchange",
        element(
          "p",
          element("strong", `${exchange.api} v${exchange.version}`),
          ` to ${exchange.node}, ${exchange.ms} ms`,
        ),
        element("pre.request", { tabindex: "0", "aria-label": "request" }, exchange.request),
        element("pre.response", { tabindex: "0", "aria-label": "response" }, exchange.response),
      ),
    ),
  );
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
    return element(
      "p",
      `Always answered alike, and never wrongly, in the ${counted(nights, "night")} of this backend in history.`,
    );
  }
  return [
    changes.length > 0 &&
      element(
        "ul",
        changes.map((change) =>
          element(
            "li",
            element("strong", change.outcome),
            ` ${change.check}: ${change.before} → ${change.after}`,
            change.moved.length ? `; moved: ${change.moved.join(", ")}` : "; nothing that a run records has moved",
          ),
        ),
      ),
    seen.length > 0 &&
      element(
        "ul",
        seen.map((each) =>
          element(
            "li",
            `${each.check} deviated in ${each.deviating} of ${counted(each.runs, "run")}, first ${moment(each.first)}`,
            each.first_build ? ` with ${each.first_build}` : "",
            each.still ? ", and still does" : `, last ${moment(each.last)}`,
          ),
        ),
      ),
    flakes.length > 0 &&
      element(
        "ul",
        flakes.map((flake) =>
          element(
            "li",
            `${flake.check} is flaky: ${flake.odd} of ${counted(flake.runs, "run")} were unlike the others,`,
            ` ${percent(flake.rate)} (${percent(flake.low)} to ${percent(flake.high)} with 95 % confidence):`,
            ` ${flake.verdicts.join(", ")}`,
          ),
        ),
      ),
    sightings.length > 0 &&
      table(
        "Sightings of this cell",
        ["check", "verdict", "version or build", "runs", "first seen", "last seen"],
        sightings.map((each) => [
          element("code", each.check.slice(each.check.indexOf(":") + 1)),
          outcomeMark(report.outcome(each.verdict)),
          each.version || each.build,
          each.runs,
          moment(each.first),
          moment(each.last),
        ]),
      ),
  ];
}

function noHistory() {
  return element(
    "p.aside",
    "There is no history yet. ",
    element("code", "offsets nightly"),
    " keeps one, and so does ",
    element("code", "offsets report out/results --history out/history"),
    ".",
  );
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

/**
 * The entry as `offsets baseline write` proposes it: the scenario, or those of its checks that came out that way.
 * A check that flakes is listed as flaky, whatever it did in this run.
 */
function baselineEntry(row, column, checks) {
  const { outcome } = row.cells[column.place];
  const flakes = row.flakes.filter((flake) => flake.column === column.place);
  if (flakes.length) {
    const reason = `answered in more than one way by one build: ${flakes[0].verdicts.join(", ")}`;
    return baselineText(
      "flaky",
      reason,
      flakes.map((flake) => flake.check),
    );
  }
  const alike = checks.filter((check) => check.outcome === outcome);
  if (!alike.length || outcome.word === "conforms") return null;
  const ids = alike.length === checks.length ? [row.scenario] : alike.map((check) => check.id);
  return baselineText(outcome.word, alike[0].reason.slice(0, 200), ids);
}

/** In the format of `conformance/baselines.py`; JSON's escapes are TOML's. */
function baselineText(verdict, reason, ids) {
  const reported = verdict === "deviates" || verdict === "flaky";
  return [
    "[[known]]",
    `verdict = ${JSON.stringify(verdict)}`,
    ...(reported ? ['bug = ""'] : []),
    `reason = ${JSON.stringify(reason)}`,
    "ids = [",
    ...ids.map((id) => `    ${JSON.stringify(id)},`),
    "]",
    "",
  ].join("\n");
}
