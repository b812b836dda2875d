"use strict";
// Everything but the matrix and the drawer: what changed, who is safe, and the views by broker, profile, answer and time.

const SAFE = {
  yes: { symbol: "✓", word: "safe" },
  no: { symbol: "✗", word: "not safe" },
  unknown: { symbol: "?", word: "unknown" },
};

function safeMark(verdict) {
  const { symbol, word } = SAFE[verdict.safe];
  return element("span", { class: `safe ${verdict.safe}` }, element("span", { class: "symbol", "aria-hidden": "true" }, symbol), ` ${word}`,
    element("span", { class: "share" }, ` ${verdict.kept}/${verdict.rules}`));
}

/** A link that opens a cell's drawer over whatever is shown. */
function cellLink(row, column, ...content) {
  return stateLink({ cell: { scenario: row.scenario, backend: column.backend } }, {}, ...content);
}

// What changed, and who is safe: what a reader sees first

function overview() {
  return element("div", { class: "overview" }, changesPart(), safetyPart());
}

/** Nobody is woken for these: what is mended, what is asked for the first time, and what we changed ourselves. */
const GOOD_NEWS = new Set(["fixed", "new", "scenario changed"]);

function changesPart() {
  const told = report.history;
  const head = element("h2", { id: "changes-title" }, "What changed");
  const section = (...content) => element("section", { "aria-labelledby": "changes-title", class: "changes" }, head, ...content);
  if (!told) return section(noHistory(), notRun());
  const compared = Object.keys(told.compared).length;
  if (!compared) return section(element("p", {}, "There is no earlier good night to compare with: the next one will be compared with this."), notRun());
  const groups = report.changes.map(([outcome, meaning]) => ({ outcome, meaning, changes: told.changes.filter((change) => change.outcome === outcome) }))
    .filter((group) => group.changes.length);
  const since = `${counted(compared, "backend")} compared with the last good night`;
  if (!groups.length) return section(element("p", { class: "verdict yes" }, "✓ Nothing changed"), element("p", { class: "aside" }, `${since}.`), notRun());
  return section(
    element("p", { class: "verdict" }, groups.map((group) => element("span", { class: GOOD_NEWS.has(group.outcome) ? "tally" : "tally bad" },
      element("strong", {}, String(group.changes.length)), ` ${group.outcome}`))),
    element("p", { class: "aside" }, `${since}.`),
    groups.map((group) => changeGroup(group, groups.length === 1)), notRun());
}

/** As many as a screen has room for; the rest waits behind a button. */
const CHANGES_SHOWN = 8;

function changeGroup({ outcome, meaning, changes }, alone) {
  const list = element("ul", {}, changes.slice(0, CHANGES_SHOWN).map(changeLine));
  const rest = changes.slice(CHANGES_SHOWN);
  const more = rest.length > 0 && element("button", { type: "button", class: "quiet", click: () => {
    list.append(...rest.map(changeLine));
    more.remove();
  } }, `Show ${rest.length} more`);
  return element("details", { class: "change-group", open: alone || !GOOD_NEWS.has(outcome) },
    element("summary", {}, element("strong", {}, `${changes.length} ${outcome}`), element("span", { class: "aside" }, ` ${meaning}`)), list, more);
}

function changeLine(change) {
  const column = report.columns[change.column];
  const name = element("code", {}, change.check);
  return element("li", {},
    change.row && column ? cellLink(change.row, column, name) : name, " on ", element("strong", {}, change.backend),
    `: ${change.before} → ${change.after}`,
    change.reason && element("span", { class: "why" }, change.reason),
    element("span", { class: "why" }, change.moved.length ? `moved: ${change.moved.join(", ")}` : "nothing that a run records has moved"));
}

function notRun() {
  const absent = report.columns.filter((column) => column.status !== "complete");
  return absent.length > 0 && element("ul", { class: "absent" }, absent.map((column) => element("li", {},
    element("strong", {}, column.backend), ` ${column.status}`, column.reasons.length ? `: ${column.reasons.join("; ")}` : ": every complete line of its run is shown")));
}

function safetyPart() {
  if (!report.profiles.length) return null;
  return element("section", { "aria-labelledby": "safe-title", class: "safety" }, element("h2", { id: "safe-title" }, "Safe for us?"),
    table("Backends by profile", ["backend", ...report.profiles.map((profile) => profile.name)], report.columns.map((column) => [
      stateLink({ view: "brokers", broker: column.backend }, {}, column.backend),
      ...report.profiles.map((profile) => {
        const verdict = profile.verdicts.find((each) => each.column === column.place);
        return verdict && stateLink({ view: "profiles", profile: profile.name }, { class: "bare" }, safeMark(verdict));
      })])));
}

// By broker

function brokersView() {
  const place = element("div", { class: "columns" });
  return {
    element: [element("h2", {}, VIEWS.brokers), place],
    update(state) {
      const column = report.column(state.broker) ?? report.columns[0];
      if (!column) return void place.replaceChildren(element("p", {}, "There is no backend in this report."));
      place.replaceChildren(
        chooser("Backends", report.columns.map((each) => ({ label: each.backend, note: each.status === "complete" ? "" : each.status, current: each === column, changes: { broker: each.backend } }))),
        brokerPart(column));
    },
  };
}

function chooser(label, choices) {
  return element("nav", { class: "chooser", "aria-label": label }, element("ul", {}, choices.map((choice) => element("li", {},
    stateLink(choice.changes, { "aria-current": choice.current ? "true" : null }, choice.label, choice.note && element("small", {}, ` ${choice.note}`))))));
}

function brokerPart(column) {
  const digest = column.build.match(/sha256:[0-9a-f]{12,64}/)?.[0];
  const rows = report.rows.map((row) => ({ row, cell: row.cells[column.place] }));
  const of = (...words) => rows.filter(({ cell }) => words.includes(cell.outcome.word));
  const counts = report.outcomes.map((outcome) => ({ outcome, number: rows.filter(({ cell }) => cell.outcome === outcome).length })).filter((each) => each.number);
  return element("article", {},
    element("h3", { class: "big" }, column.backend, column.oracle && element("span", { class: "remark" }, "oracle: Apache Kafka itself")),
    element("dl", { class: "facts-list" }, pair("status", [column.status, column.reasons.length ? `: ${column.reasons.join("; ")}` : ""]),
      column.version && pair("version", column.version), pair("build", element("code", {}, column.build || "unknown")),
      digest && pair("digest", element("code", {}, digest)), pair("run", [element("code", {}, column.run), `, ${moment(column.started)} UTC`])),
    element("p", { class: "tallies" }, counts.map(({ outcome, number }) => element("span", {}, element("strong", {}, String(number)), " ", outcomeMark(outcome)))),
    report.profiles.length > 0 && [element("h4", {}, "Safe for"), table(`Profiles of ${column.backend}`, ["profile", "verdict", "what it is about"], report.profiles.map((profile) => {
      const verdict = profile.verdicts.find((each) => each.column === column.place);
      return [stateLink({ view: "profiles", profile: profile.name }, {}, profile.name), verdict ? safeMark(verdict) : "", profile.about];
    }))],
    outcomeList("What deviates", of("deviates"), column, true),
    outcomeList("Not judged", of("inconclusive", "broken", "missing"), column, true),
    outcomeList("Declined on the wire", of("unsupported"), column, false),
    outcomeList("Capabilities it declares absent", of("not-applicable"), column, false));
}

function outcomeList(title, found, column, open) {
  if (!found.length) return null;
  return element("details", { class: "outcome-list", open }, element("summary", {}, element("strong", {}, title), element("span", { class: "number" }, ` ${found.length}`)),
    table(title, ["scenario", "level", "verdict", "what that does"], found.map(({ row, cell }) => [
      [cellLink(row, column, element("code", {}, row.scenario)), element("span", { class: "title" }, row.title)],
      element("span", { class: `level ${row.level}` }, row.level),
      outcomeMark(cell.outcome, cell.agreeing < cell.checks ? ` ${cell.agreeing}/${cell.checks}` : ""),
      row.impact])));
}

// By profile

function profilesView() {
  const place = element("div", { class: "columns" });
  return {
    element: [element("h2", {}, VIEWS.profiles), place],
    update(state) {
      const profile = report.profiles.find((each) => each.name === state.profile) ?? report.profiles[0];
      if (!profile) return void place.replaceChildren(element("p", {}, "This report gives no verdict on a profile."));
      place.replaceChildren(
        chooser("Profiles", report.profiles.map((each) => ({ label: each.name, current: each === profile, changes: { profile: each.name } }))),
        element("article", {}, element("h3", { class: "big" }, profile.name), profile.about && element("p", { class: "lead" }, profile.about),
          profile.verdicts.map((verdict) => profileVerdict(verdict))));
    },
  };
}

function profileVerdict(verdict) {
  const column = report.columns[verdict.column];
  const rules = (title, found) => found.length > 0 && [element("h4", {}, title), element("ul", { class: "rules" }, found.map(([place, scenario, outcome]) => {
    const row = place < 0 ? null : report.row(scenario);
    return element("li", {}, row ? cellLink(row, column, element("code", {}, scenario)) : element("code", {}, scenario), " ", outcomeMark(report.outcome(outcome)),
      row?.impact && element("span", { class: "why" }, row.impact));
  }))];
  return element("details", { class: "profile", open: verdict.safe === "no" && !column.oracle },
    element("summary", {}, element("span", { class: "name" }, column.backend), safeMark(verdict)),
    verdict.failures.length + verdict.unknown.length ? [rules("Not kept, and what that does", verdict.failures), rules("Not judged", verdict.unknown)]
      : element("p", { class: "aside" }, `All ${verdict.rules} rules are kept.`));
}

// Who answers alike

function alikeView() {
  const asked = report.rows.filter((row) => row.alike.length);
  const split = asked.filter((row) => row.alike.length > 1);
  const together = (one, other) => asked.filter((row) => row.alike.some((group) => group.members.includes(one) && group.members.includes(other))).length;
  const both = (one, other) => asked.filter((row) => [one, other].every((place) => row.alike.some((group) => group.members.includes(place)))).length;
  const ran = report.columns.filter((column) => asked.some((row) => row.alike.some((group) => group.members.includes(column.place))));
  const alone = ran.map((column) => ({ column, rows: report.rows.filter((row) => row.odd.includes(column.place)) })).filter((each) => each.rows.length);
  const list = element("div", {});
  const names = (members) => members.map((place) => report.columns[place].backend).join(", ");
  return {
    element: [
      element("h2", {}, VIEWS.alike),
      element("p", { class: "lead" }, "Two backends answer a scenario alike when every check of it got the same answer. Answers that are exactly Kafka's count as the same."),
      ran.length > 1 && [element("h3", {}, "In how many scenarios"), table("Scenarios that two backends answer alike", ["backend", ...ran.map((column) => column.backend)],
        ran.map((one) => [one.backend, ...ran.map((other) => one === other ? element("span", { class: "aside" }, "–") : likeness(together(one.place, other.place), both(one.place, other.place)))]), { class: "plain likeness" })],
      element("h3", {}, "The odd one out"),
      alone.length ? alone.map(({ column, rows }) => element("details", { class: "profile" },
        element("summary", {}, element("span", { class: "name" }, column.backend), element("span", {}, `alone in ${counted(rows.length, "scenario")}`)),
        element("ul", { class: "rules" }, rows.map((row) => element("li", {}, cellLink(row, column, element("code", {}, row.scenario)), " ",
          outcomeMark(row.cells[column.place].outcome), element("span", { class: "why" }, row.title))))))
        : element("p", { class: "aside" }, "In no scenario does one backend stand against all others."),
      element("h3", {}, `Where answers part: ${counted(split.length, "scenario")} of ${asked.length}`), list,
    ],
    update() {
      const part = (row) => [element("code", {}, row.scenario), element("ol", { class: "groups" }, row.alike.map((group) => element("li", {},
        cellLink(row, report.columns[group.members[0]], outcomeMark(row.cells[group.members[0]].outcome)), " ", names(group.members))))];
      list.replaceChildren(split.length ? table("Scenarios and the groups that answer alike", ["scenario", "who answers alike"], split.map(part)) : element("p", { class: "aside" }, "Nowhere."));
    },
  };
}

function likeness(alike, both) {
  return both ? element("span", { class: alike === both ? "same" : "" }, `${alike}/${both}`) : element("span", { class: "aside" }, "not both asked");
}

// Trends

function trendsView() {
  return {
    element: [element("h2", {}, VIEWS.trends), element("h3", {}, "Over nights: what was not as it should be"), nightsPart(), element("h3", {}, "Over versions: how all scenarios came out"), versionsPart()],
    update() {},
  };
}

function nightsPart() {
  const nights = report.history?.nights ?? [];
  if (!nights.length) return noHistory();
  const inOrder = nights.toSorted((one, other) => one.started.localeCompare(other.started));
  return element("div", { class: "charts" }, [...Map.groupBy(inOrder, (night) => night.backend)].map(([backend, own]) =>
    stackedBars(`${backend}: ${counted(own.length, "night")} from ${own[0].started.slice(0, 10)} to ${own.at(-1).started.slice(0, 10)}`, "night",
      own.map((night) => ({
        label: night.started.slice(5, 10),
        note: `${moment(night.started)} ${night.run_id}${night.good ? "" : ", not a good night"}`,
        counts: night.counts,
      })), TROUBLE)));
}

function versionsPart() {
  const families = [...Map.groupBy(report.columns.filter((column) => column.status !== "not run"), (column) => column.family)].filter(([, columns]) => columns.length > 1);
  const changed = report.history?.versions ?? [];
  return [
    families.length ? element("div", { class: "charts" }, families.map(([family, columns]) => stackedBars(`${family}: ${counted(columns.length, "version")}, oldest first`, "version",
      columns.toReversed().map((column) => ({ label: column.backend.slice(family.length).replace(/^@/, "") || family, note: column.backend, counts: tallied(column) })))))
      : element("p", { class: "aside" }, "No backend is here in more than one version."),
    changed.length > 0 && [element("h4", {}, "Where a behaviour changed"), versionChanges(changed)],
  ];
}

/** Checks that changed alike between the same versions stand together: they mostly have one cause. */
function versionChanges(changed) {
  const groups = Map.groupBy(changed, (each) => JSON.stringify([each.family, each.from_version, each.to_version, each.before, each.after]));
  return [...groups.values()].map((alike) => {
    const [{ family, from_version, to_version, before, after }] = alike;
    return unfolding([element("span", { class: "name" }, `${family} ${from_version} → ${to_version}`),
      element("span", {}, outcomeMark(report.outcome(before)), " → ", outcomeMark(report.outcome(after))), element("span", { class: "number" }, counted(alike.length, "check"))],
      () => element("ul", { class: "many" }, alike.map((each) => element("li", {}, element("code", {}, each.check)))), { class: "profile" });
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
