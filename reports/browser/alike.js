"use strict";
// Who answers alike: pairs of backends, the odd one out, and the scenarios in which answers part.

function alikeView() {
  const asked = report.rows.filter((row) => row.alike.length);
  const parted = asked.filter((row) => row.alike.length > 1);
  const about =
    "Two backends answer a scenario alike when every check of it got the same answer." +
    " Answers that are exactly Kafka's count as the same.";
  return {
    element: [
      element("h2", VIEWS.alike),
      element("p.lead", about),
      element("h3", "In how many scenarios"),
      pairs(asked),
      element("h3", "The odd one out"),
      oddOnes(),
      element("h3", `Where answers part: ${counted(parted.length, "scenario")} of ${asked.length}`),
      parted.length ? partings(parted) : element("p.aside", "Nowhere."),
    ],
    update() {},
  };
}

/** For each two backends: in how many of the scenarios that both were asked they answered alike. */
function pairs(asked) {
  const groupOf = (row, column) => row.alike.find((group) => group.members.includes(column.place));
  const ran = report.columns.filter((column) => asked.some((row) => groupOf(row, column)));
  const likeness = (one, other) => {
    if (one === other) return element("span.aside", "–");
    const both = asked.filter((row) => groupOf(row, one) && groupOf(row, other));
    const alike = both.filter((row) => groupOf(row, one) === groupOf(row, other));
    return element("span", { class: alike.length === both.length && "same" }, `${alike.length}/${both.length}`);
  };
  return table(
    "Scenarios that two backends answer alike",
    ["backend", ...ran.map((column) => column.backend)],
    ran.map((one) => [one.backend, ...ran.map((other) => likeness(one, other))]),
    { class: "plain likeness" },
  );
}

function oddOnes() {
  const alone = report.columns
    .map((column) => ({ column, rows: report.rows.filter((row) => row.odd.includes(column.place)) }))
    .filter((each) => each.rows.length);
  if (!alone.length) return element("p.aside", "In no scenario does one backend stand against all others.");
  return alone.map(({ column, rows }) =>
    unfolding(
      [element("span.name", column.backend), element("span", `alone in ${counted(rows.length, "scenario")}`)],
      () =>
        element(
          "ul.rules",
          rows.map((row) => oddRow(row, column)),
        ),
      { class: "profile" },
    ),
  );
}

function oddRow(row, column) {
  return element(
    "li",
    cellLink(row, column, element("code", row.scenario)),
    " ",
    outcomeMark(row.cells[column.place].outcome),
    element("span.why", row.title),
  );
}

function partings(rows) {
  const group = (row, { members }) => {
    const [first] = members.map((place) => report.columns[place]);
    const names = members.map((place) => report.columns[place].backend).join(", ");
    return element("li", cellLink(row, first, outcomeMark(row.cells[first.place].outcome)), ` ${names}`);
  };
  return table(
    "Scenarios and the groups that answer alike",
    ["scenario", "who answers alike"],
    rows.map((row) => [
      element("code", row.scenario),
      element(
        "ol.groups",
        row.alike.map((each) => group(row, each)),
      ),
    ]),
  );
}
