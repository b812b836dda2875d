"use strict";
// One profile: which backends keep its rules, and what those that do not would do to a user.

function profilesView() {
  const place = element("div.columns");
  return {
    element: [element("h2", VIEWS.profiles), place],
    update(state) {
      const profile = report.profiles.find((each) => each.name === state.profile) ?? report.profiles[0];
      if (!profile) return void place.replaceChildren(element("p", "This report gives no verdict on a profile."));
      place.replaceChildren(
        chooser(
          "Profiles",
          report.profiles.map((each) => ({
            label: each.name,
            current: each === profile,
            changes: { profile: each.name },
          })),
        ),
        element(
          "article",
          element("h3.big", profile.name),
          profile.about && element("p.lead", profile.about),
          profile.verdicts.map((verdict) => profileVerdict(verdict)),
        ),
      );
    },
  };
}

function profileVerdict(verdict) {
  const column = report.columns[verdict.column];
  const rules = (title, found) =>
    found.length > 0 && [
      element("h4", title),
      element(
        "ul.rules",
        found.map(([place, scenario, outcome]) => {
          const row = place < 0 ? null : report.row(scenario);
          return element(
            "li",
            row ? cellLink(row, column, element("code", scenario)) : element("code", scenario),
            " ",
            outcomeMark(report.outcome(outcome)),
            row?.impact && element("span.why", row.impact),
          );
        }),
      ),
    ];
  return element(
    "details.profile",
    { open: verdict.safe === "no" && !column.oracle },
    element("summary", element("span.name", column.backend), safeMark(verdict)),
    verdict.failures.length + verdict.unknown.length
      ? [rules("Not kept, and what that does", verdict.failures), rules("Not judged", verdict.unknown)]
      : element("p.aside", `All ${verdict.rules} rules are kept.`),
  );
}
