"use strict";
// Charts of a few numbers, drawn by hand, each with the table that it is drawn from.

/** Outcomes from the ground up: what is well stands below, what is not stands on top of it. */
const STACK = ["conforms", "not-applicable", "unsupported", "inconclusive", "broken", "deviates"];

/** What a night is looked at for. What conforms would dwarf it, and is in the table. */
const TROUBLE = ["inconclusive", "broken", "deviates"];

const CHART = { width: 640, height: 112, left: 34, below: 20 };

/** Stacked bars of some outcomes, each a `thing`: {label, note, counts}, counts by outcome. They share one scale. */
function stackedBars(caption, thing, bars, outcomes = STACK) {
  const seen = STACK.filter((word) => bars.some((bar) => bar.counts[word]));
  const present = seen.filter((word) => outcomes.includes(word));
  const most = Math.max(1, ...bars.map((bar) => present.reduce((sum, word) => sum + (bar.counts[word] ?? 0), 0)));
  const worstFirst = present.toReversed();
  const asTable = () =>
    table(
      caption,
      [thing, ...seen.toReversed()],
      bars.map((bar) => [bar.note, ...seen.toReversed().map((word) => String(bar.counts[word] ?? 0))]),
    );
  return element(
    "figure.chart",
    element("figcaption", caption),
    present.length === 0 && element("p.aside", `No ${outcomes.toReversed().join(", ")}.`),
    present.length > 0 &&
      drawn(
        "svg",
        {
          viewBox: `0 0 ${CHART.width} ${CHART.height + CHART.below}`,
          role: "img",
          "aria-label": `${caption}; the table below has the numbers`,
        },
        scale(most),
        shapes(bars, present, most),
        labels(bars),
      ),
    element(
      "p.keys-of-chart",
      worstFirst.map((word) =>
        element(
          "span",
          element("span", { class: `swatch ${word}`, "aria-hidden": "true" }),
          outcomeMark(report.outcome(word)),
        ),
      ),
    ),
    unfolding("As a table", asTable),
  );
}

function scale(most) {
  return [0, most].map((value) => {
    const y = CHART.height - height(value, most);
    return [
      drawn("line.rule", { x1: CHART.left, x2: CHART.width, y1: y, y2: y }),
      drawn("text.scale", { x: CHART.left - 6, y: y + 4, "text-anchor": "end" }, String(value)),
    ];
  });
}

function height(value, most) {
  return (value / most) * (CHART.height - 8);
}

/** Where a bar stands, and how wide it is: many bars touch, few leave air between them. */
function span(bars, place) {
  const step = (CHART.width - CHART.left) / bars.length;
  const thick = Math.min(64, step * (bars.length > 60 ? 1 : 0.7));
  return [CHART.left + step * place + (step - thick) / 2, thick];
}

/** One shape per outcome, of all its bars together: a year of twenty backends is not to be fifty thousand elements. */
function shapes(bars, present, most) {
  const ground = bars.map(() => CHART.height);
  return present.map((word) => {
    const path = bars.map((bar, place) => {
      const size = height(bar.counts[word] ?? 0, most);
      const [x, thick] = span(bars, place);
      ground[place] -= size;
      return size
        ? `M${x.toFixed(1)} ${ground[place].toFixed(1)}h${thick.toFixed(1)}v${size.toFixed(1)}h${(-thick).toFixed(1)}z`
        : "";
    });
    return drawn("path", { class: `bar ${word}`, d: path.join("") });
  });
}

/** As many as there is room for; the table has all of them. */
function labels(bars) {
  const every = Math.ceil(bars.length / 8);
  return bars.map((bar, place) => {
    if (place % every) return null;
    const [x, thick] = span(bars, place);
    const edge = x < CHART.left + 4;
    return drawn(
      "text.scale",
      { x: edge ? x : x + thick / 2, y: CHART.height + 14, "text-anchor": edge ? "start" : "middle" },
      bar.label,
    );
  });
}
