"use strict";
// Elements by function call. Text only ever becomes a text node, so nothing that a broker sent can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Attributes that are null, undefined or false are left out; functions are listeners for their event. */
function element(name, attributes, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

/** The same for a part of a picture. */
function drawn(name, attributes, ...children) {
  return furnish(document.createElementNS(SVG, name), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** 1 check, 2 checks. */
function counted(number, thing) {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}

/** A symbol with its word: neither stands alone, and colour only repeats them. */
function outcomeMark(outcome, ...more) {
  return element("span", { class: `mark ${outcome.key}` },
    element("span", { class: "symbol", "aria-hidden": "true" }, outcome.symbol), ` ${outcome.word}`, ...more);
}

/** A table: headings are texts, rows are lists of whatever a cell may hold. The first cell of a row heads it. */
function table(caption, headings, rows, attributes = {}) {
  return element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": caption },
    element("table", { class: "plain", ...attributes },
      element("caption", { class: "unseen" }, caption),
      element("thead", {}, element("tr", {}, headings.map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, rows.map(([head, ...cells]) => element("tr", {},
        element("th", { scope: "row" }, head), cells.map((cell) => element("td", {}, cell)))))));
}

/** A part that is made when it is first opened. */
function unfolding(summary, make, attributes = {}) {
  const details = element("details", { ...attributes, toggle: () => {
    if (details.open && details.childElementCount === 1) details.append(...[make()].flat(Infinity).filter(Boolean));
  } }, element("summary", {}, summary));
  if (details.open) details.append(...[make()].flat(Infinity).filter(Boolean));
  return details;
}

/** A text to take away, with the button for it. The clipboard may be closed to a page from disk: then it is selected. */
function copyable(label, text) {
  const code = element("pre", { tabindex: "0", "aria-label": label }, text);
  const copy = async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    announce(`${label}: ${button.textContent.toLowerCase()}`);
  };
  return element("div", { class: "copyable" }, code, element("button", { type: "button", click: copy }, "Copy"));
}

/** Say something to whoever listens instead of looking. */
function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** A moment as a person writes it: to the minute, in UTC. */
function moment(iso) {
  return iso ? `${iso.slice(0, 10)} ${iso.slice(11, 16)}` : "unknown";
}

function percent(share) {
  return `${Math.round(share * 100)} %`;
}
