"use strict";
// Charts of a few numbers, drawn by hand, each with the table that it is drawn from.

/** Outcomes from the ground up: what is well stands below, what is not stands on top of it. */
const STACK = ["conforms", "not-applicable", "unsupported", "inconclusive", "broken", "deviates"];

/** Stacked bars, each a `thing`: {label, note, counts}, counts by outcome. They share one scale. */
function stackedBars(caption, thing, bars) {
  const [height, left, bottom] = [120, 34, 20];
  const width = 640;
  const most = Math.max(1, ...bars.map((bar) => STACK.reduce((sum, word) => sum + (bar.counts[word] ?? 0), 0)));
  const step = (width - left) / bars.length;
  const thick = Math.max(1, Math.min(64, step * (bars.length > 60 ? 0.92 : 0.7)));
  const parts = [0, most].map((value) => {
    const y = height - (value / most) * (height - 8);
    return [drawn("line", { class: "rule", x1: left, x2: width, y1: y, y2: y }),
      drawn("text", { class: "scale", x: left - 6, y: y + 4, "text-anchor": "end" }, String(value))];
  });
  bars.forEach((bar, place) => {
    let y = height;
    const x = left + step * place + (step - thick) / 2;
    for (const word of STACK) {
      const size = ((bar.counts[word] ?? 0) / most) * (height - 8);
      if (!size) continue;
      y -= size;
      parts.push(drawn("rect", { class: `bar ${word}`, x: x.toFixed(2), y: y.toFixed(2), width: thick.toFixed(2), height: size.toFixed(2) }));
    }
    // As many labels as there is room for; the table has all of them.
    const every = Math.ceil(bars.length / 8);
    if (place % every === 0) {
      parts.push(drawn("text", { class: "scale", x: x + thick / 2, y: height + 14, "text-anchor": place === 0 && bars.length > 8 ? "start" : "middle" }, bar.label));
    }
  });
  const present = STACK.filter((word) => bars.some((bar) => bar.counts[word])).toReversed();
  return element("figure", { class: "chart" },
    element("figcaption", {}, caption),
    drawn("svg", { viewBox: `0 0 ${width} ${height + bottom}`, role: "img", "aria-label": `${caption}; the table below has the numbers` }, parts),
    element("p", { class: "keys-of-chart" }, present.map((word) => element("span", {}, element("span", { class: `swatch ${word}`, "aria-hidden": "true" }), outcomeMark(report.outcome(word))))),
    element("details", {}, element("summary", {}, "As a table"),
      table(caption, [thing, ...present], bars.map((bar) => [bar.note, ...present.map((word) => String(bar.counts[word] ?? 0))]))));
}
