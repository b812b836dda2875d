"use strict";
// One backend: what it is, what it is safe for, and where it deviates.

function brokersView() {
  const place = element("div.columns");
  return {
    element: [element("h2", VIEWS.brokers), place],
    update(state) {
      const column = report.column(state.broker) ?? report.columns[0];
      if (!column) return void place.replaceChildren(element("p", "There is no backend in this report."));
      place.replaceChildren(
        chooser(
          "Backends",
          report.columns.map((each) => ({
            label: each.backend,
            note: each.status === "complete" ? "" : each.status,
            current: each === column,
            changes: { broker: each.backend },
          })),
        ),
        brokerPart(column),
      );
    },
  };
}

function chooser(label, choices) {
  return element(
    "nav.chooser",
    { "aria-label": label },
    element(
      "ul",
      choices.map((choice) =>
        element(
          "li",
          stateLink(
            choice.changes,
            { "aria-current": choice.current ? "true" : null },
            choice.label,
            choice.note && element("small", ` ${choice.note}`),
          ),
        ),
      ),
    ),
  );
}

function brokerPart(column) {
  const digest = column.build.match(/sha256:[0-9a-f]{12,64}/)?.[0];
  const rows = report.rows.map((row) => ({ row, cell: row.cells[column.place] }));
  const of = (...words) => rows.filter(({ cell }) => words.includes(cell.outcome.word));
  const counts = report.outcomes
    .map((outcome) => ({ outcome, number: rows.filter(({ cell }) => cell.outcome === outcome).length }))
    .filter((each) => each.number);
  return element(
    "article",
    element("h3.big", column.backend, column.oracle && element("span.remark", "oracle: Apache Kafka itself")),
    element(
      "dl.facts-list",
      pair("status", [column.status, column.reasons.length ? `: ${column.reasons.join("; ")}` : ""]),
      column.version && pair("version", column.version),
      pair("build", element("code", column.build || "unknown")),
      digest && pair("digest", element("code", digest)),
      pair("run", [element("code", column.run), `, ${moment(column.started)} UTC`]),
    ),
    element(
      "p.tallies",
      counts.map(({ outcome, number }) =>
        element("span", element("strong", String(number)), " ", outcomeMark(outcome)),
      ),
    ),
    report.profiles.length > 0 && [
      element("h4", "Safe for"),
      table(
        `Profiles of ${column.backend}`,
        ["profile", "verdict", "what it is about"],
        report.profiles.map((profile) => {
          const verdict = profile.verdicts.find((each) => each.column === column.place);
          return [
            stateLink({ view: "profiles", profile: profile.name }, {}, profile.name),
            verdict ? safeMark(verdict) : "",
            profile.about,
          ];
        }),
      ),
    ],
    outcomeList("What deviates", of("deviates"), column, true),
    outcomeList("Not judged", of("inconclusive", "broken", "missing"), column, true),
    outcomeList("Declined on the wire", of("unsupported"), column, false),
    outcomeList("Capabilities it declares absent", of("not-applicable"), column, false),
  );
}

function outcomeList(title, found, column, open) {
  if (!found.length) return null;
  return element(
    "details.outcome-list",
    { open },
    element("summary", element("strong", title), element("span.number", ` ${found.length}`)),
    table(
      title,
      ["scenario", "level", "verdict", "what that does"],
      found.map(({ row, cell }) => [
        [cellLink(row, column, element("code", row.scenario)), element("span.title", row.title)],
        element("span", { class: `level ${row.level}` }, row.level),
        outcomeMark(cell.outcome, shareText(cell)),
        row.impact,
      ]),
    ),
  );
}
