"use strict";
// The data that the page carries, under the names that the rest of the page uses. Only read, never changed.

/** The fields of a check and of an exchange, in the order of `reports/embedded.py`. */
const CHECK_FIELDS = [
  "id",
  "revision",
  "outcome",
  "legal",
  "reason",
  "asked",
  "accepted",
  "observed",
  "sources",
  "test",
  "ms",
  "oracle",
  "oracleObserved",
  "exchanged",
  "exchanges",
];
const EXCHANGE_FIELDS = ["api", "version", "node", "ms", "request", "response"];

/** What an answer must be for it to count when backends are compared: the others were not asked, or not judged. */
const JUDGED = new Set(["conforms", "deviates", "unsupported"]);

const report = read(JSON.parse(document.getElementById("data").textContent));

function read(data) {
  const outcomes = data.outcomes.map(([word, symbol, meaning]) => ({
    word,
    symbol,
    meaning,
    key: word.replace(" ", "-"),
  }));
  const columns = data.columns.map((column, place) => ({
    ...column,
    place,
    family: column.backend.split(/[@(]/)[0],
  }));
  const areas = data.areas.map(([key, title]) => ({ key, title }));
  const order = new Map(areas.map((area, place) => [area.key, place]));
  const rows = data.rows.map((row, place) => ({
    ...row,
    place,
    cells: row.cells.map(([outcome, agreeing, checks]) => ({ outcome: outcomes[outcome], agreeing, checks })),
    alike: (data.alike[place] ?? []).map(([members, odd]) => ({ members, odd })),
  }));
  const byScenario = new Map(rows.map((row) => [row.scenario, row]));
  const history = data.history && readHistory(data.history, columns, byScenario);
  for (const row of rows) {
    row.changes = history?.changesOf.get(row.scenario) ?? [];
    row.flakes = history?.flakesOf.get(row.scenario) ?? [];
    row.odd = row.alike.filter((group) => group.odd).flatMap((group) => group.members);
    // A column that did not run says so in its heading; it cannot keep every row from folding away.
    row.calm =
      !row.changes.length &&
      !row.flakes.length &&
      row.cells.every(
        (cell, place) =>
          cell.outcome.word === "conforms" ||
          (cell.outcome.word === "not run" && columns[place].status === "not run"),
      );
  }
  return {
    ...data,
    outcomes,
    columns,
    areas,
    history,
    rows: rows.toSorted((one, other) => order.get(one.area) - order.get(other.area) || one.place - other.place),
    outcome: (word) => outcomes.find((each) => each.word === word),
    column: (backend) => columns.find((column) => column.backend === backend),
    row: (scenario) => byScenario.get(scenario),
    area: (key) => areas[order.get(key)],
    checks: (row, column) =>
      (data.checks[row.place]?.[column.place] ?? []).map((check) => readCheck(check, data, outcomes)),
  };
}

function readCheck(values, data, outcomes) {
  const check = Object.fromEntries(CHECK_FIELDS.map((name, place) => [name, values[place]]));
  for (const name of ["id", "reason", "asked", "test", "oracle"]) check[name] = data.texts[check[name]];
  check.accepted = data.accepted[check.accepted];
  for (const name of ["observed", "oracleObserved"]) check[name] = data.observed[check[name]];
  check.outcome = outcomes[check.outcome];
  check.sources = check.sources.map((place) => data.texts[place]);
  check.exchanges = check.exchanges.map((exchange) => {
    const told = Object.fromEntries(EXCHANGE_FIELDS.map((name, place) => [name, exchange[place]]));
    return { ...told, api: data.texts[told.api], node: data.texts[told.node] };
  });
  return check;
}

function readHistory(history, columns, byScenario) {
  const scenario = (check) => check.split(":")[0];
  const places = new Map(columns.map((column) => [column.backend, column.place]));
  // A build that is not shown any more may have flaked; the cell is about the one that is.
  const current = history.flakes.filter((flake) => columns[places.get(flake.backend)]?.build === flake.build);
  const changes = history.changes.map((change) => ({
    ...change,
    scenario: scenario(change.check),
    column: places.get(change.backend),
    row: byScenario.get(scenario(change.check)),
  }));
  const flakes = current.map((flake) => ({ ...flake, column: places.get(flake.backend) }));
  return {
    ...history,
    changes,
    changesOf: Map.groupBy(changes, (change) => change.scenario),
    flakesOf: Map.groupBy(flakes, (flake) => flake.scenario),
  };
}

/** What is said of a check beside its outcome. */
function question(check) {
  return check.id.slice(check.id.indexOf(":") + 1);
}
