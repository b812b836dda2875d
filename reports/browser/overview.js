"use strict";
// What a reader sees first: what changed since the last good night, and who is safe for what.

const SAFE = {
  yes: { symbol: "✓", word: "safe" },
  no: { symbol: "✗", word: "not safe" },
  unknown: { symbol: "?", word: "unknown" },
};

function safeMark(verdict) {
  const { symbol, word } = SAFE[verdict.safe];
  return element(
    "span",
    { class: `safe ${verdict.safe}` },
    element("span.symbol", { "aria-hidden": "true" }, symbol),
    ` ${word}`,
    element("span.share", ` ${verdict.kept}/${verdict.rules}`),
  );
}

/** A link that opens a cell's drawer over whatever is shown. */
function cellLink(row, column, ...content) {
  return stateLink({ cell: { scenario: row.scenario, backend: column.backend } }, {}, ...content);
}

function overview() {
  return element("div.overview", changesPart(), safetyPart());
}

/** Nobody is woken for these: what is mended, what is asked for the first time, and what we changed ourselves. */
const GOOD_NEWS = new Set(["fixed", "new", "scenario changed"]);

function isBad({ outcome, changes }) {
  return !GOOD_NEWS.has(outcome) || (outcome === "new" && changes.some((change) => change.after === "deviates"));
}

function changesPart() {
  const told = report.history;
  const head = element("h2", { id: "changes-title" }, "What changed");
  const section = (...content) =>
    element("section", { "aria-labelledby": "changes-title", class: "changes" }, head, ...content);
  if (!told) return section(noHistory(), notRun());
  const compared = Object.keys(told.compared).length;
  if (!compared) {
    const first = "There is no earlier good night to compare with: the next one will be compared with this.";
    return section(element("p", first), notRun());
  }
  const groups = report.changes
    .map(([outcome, meaning]) => ({
      outcome,
      meaning,
      changes: told.changes.filter((change) => change.outcome === outcome),
    }))
    .filter((group) => group.changes.length);
  const since = `${counted(compared, "backend")} compared with the last good night`;
  if (!groups.length) {
    return section(element("p.verdict.yes", "✓ Nothing changed"), element("p.aside", `${since}.`), notRun());
  }
  return section(
    element(
      "p.verdict",
      groups.map((group) =>
        element(
          "span",
          { class: isBad(group) ? "tally bad" : "tally" },
          element("strong", String(group.changes.length)),
          ` ${group.outcome}`,
        ),
      ),
    ),
    element("p.aside", `${since}.`),
    groups.map((group) => changeGroup(group, groups.length === 1)),
    notRun(),
  );
}

/** As many as a screen has room for; the rest waits behind a button. */
const CHANGES_SHOWN = 8;

function changeGroup(group, alone) {
  const { outcome, meaning, changes } = group;
  const list = element("ul", changes.slice(0, CHANGES_SHOWN).map(changeLine));
  const rest = changes.slice(CHANGES_SHOWN);
  const more =
    rest.length > 0 &&
    element(
      "button.quiet",
      {
        type: "button",
        click: () => {
          list.append(...rest.map(changeLine));
          more.remove();
        },
      },
      `Show ${rest.length} more`,
    );
  return element(
    "details.change-group",
    { open: alone || isBad(group) },
    element("summary", element("strong", `${changes.length} ${outcome}`), element("span.aside", ` ${meaning}`)),
    list,
    more,
  );
}

function changeLine(change) {
  const column = report.columns[change.column];
  const name = element("code", change.check);
  return element(
    "li",
    change.row && column ? cellLink(change.row, column, name) : name,
    " on ",
    element("strong", change.backend),
    `: ${change.before} → ${change.after}`,
    change.reason && element("span.why", change.reason),
    element(
      "span.why",
      change.moved.length ? `moved: ${change.moved.join(", ")}` : "nothing that a run records has moved",
    ),
  );
}

function notRun() {
  const absent = report.columns.filter((column) => column.status !== "complete");
  return (
    absent.length > 0 &&
    element(
      "ul.absent",
      absent.map((column) =>
        element(
          "li",
          element("strong", column.backend),
          ` ${column.status}`,
          column.reasons.length ? `: ${column.reasons.join("; ")}` : ": every complete line of its run is shown",
        ),
      ),
    )
  );
}

function safetyPart() {
  if (!report.profiles.length) return null;
  return element(
    "section",
    { "aria-labelledby": "safe-title", class: "safety" },
    element("h2", { id: "safe-title" }, "Safe for us?"),
    table(
      "Backends by profile",
      ["backend", ...report.profiles.map((profile) => profile.name)],
      report.columns.map((column) => [
        stateLink({ view: "brokers", broker: column.backend }, {}, column.backend),
        ...report.profiles.map((profile) => {
          const verdict = profile.verdicts.find((each) => each.column === column.place);
          return (
            verdict && stateLink({ view: "profiles", profile: profile.name }, { class: "bare" }, safeMark(verdict))
          );
        }),
      ]),
    ),
  );
}
