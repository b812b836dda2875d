"use strict";
// How scenarios came out over nights and over versions.

function trendsView() {
  return {
    element: [
      element("h2", VIEWS.trends),
      element("h3", "Over nights: what was not as it should be"),
      nightsPart(),
      element("h3", "Over versions: how all scenarios came out"),
      versionsPart(),
    ],
    update() {},
  };
}

function nightsPart() {
  const nights = report.history?.nights ?? [];
  if (!nights.length) return noHistory();
  const day = (night) => night.started.slice(0, 10);
  const inOrder = nights.toSorted((one, other) => one.started.localeCompare(other.started));
  return element(
    "div.charts",
    [...Map.groupBy(inOrder, (night) => night.backend)].map(([backend, own]) =>
      stackedBars(
        `${backend}: ${counted(own.length, "night")} from ${day(own[0])} to ${day(own.at(-1))}`,
        "night",
        own.map((night) => ({
          label: night.started.slice(5, 10),
          note: `${moment(night.started)} ${night.run_id}${night.good ? "" : ", not a good night"}`,
          counts: night.counts,
        })),
        TROUBLE,
      ),
    ),
  );
}

function versionsPart() {
  const families = [
    ...Map.groupBy(
      report.columns.filter((column) => column.status !== "not run"),
      (column) => column.family,
    ),
  ].filter(([, columns]) => columns.length > 1);
  const changed = report.history?.versions ?? [];
  return [
    families.length
      ? element(
          "div.charts",
          families.map(([family, columns]) =>
            stackedBars(
              `${family}: ${counted(columns.length, "version")}, oldest first`,
              "version",
              columns.toReversed().map((column) => ({
                label: column.backend.slice(family.length).replace(/^@/, "") || family,
                note: column.backend,
                counts: tallied(column),
              })),
            ),
          ),
        )
      : element("p.aside", "No backend is here in more than one version."),
    changed.length > 0 && [element("h4", "Where a behaviour changed"), versionChanges(changed)],
  ];
}

/** Checks that changed alike between the same versions stand together: they mostly have one cause. */
function versionChanges(changed) {
  const groups = Map.groupBy(changed, (each) =>
    JSON.stringify([each.family, each.from_version, each.to_version, each.before, each.after]),
  );
  return [...groups.values()].map((alike) => {
    const [{ family, from_version, to_version, before, after }] = alike;
    return unfolding(
      [
        element("span.name", `${family} ${from_version} → ${to_version}`),
        element("span", outcomeMark(report.outcome(before)), " → ", outcomeMark(report.outcome(after))),
        element("span.number", counted(alike.length, "check")),
      ],
      () =>
        element(
          "ul.many",
          alike.map((each) => element("li", element("code", each.check))),
        ),
      { class: "profile" },
    );
  });
}

function tallied(column) {
  const counts = {};
  for (const row of report.rows) {
    const word = row.cells[column.place].outcome.word;
    counts[word] = (counts[word] ?? 0) + 1;
  }
  return counts;
}
