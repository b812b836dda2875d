"use strict";
// Elements by function call. Text only ever becomes a text node, so nothing that a broker sent can become markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element, by its name and classes as in "p.note", with what is in it. A plain object among the first is its
 * attributes: functions in it are listeners for their event, and what is null, undefined or false is left out.
 */
function element(name, ...content) {
  return furnished((tag) => document.createElement(tag), name, content);
}

/** The same for a part of a picture. */
function drawn(name, ...content) {
  return furnished((tag) => document.createElementNS(SVG, tag), name, content);
}

function furnished(make, name, content) {
  const [tag, ...classes] = name.split(".");
  const node = make(tag);
  node.classList.add(...classes);
  const [attributes, ...children] = isPlain(content[0]) ? content : [{}, ...content];
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value === true) node.setAttribute(key, "");
    else if (isPresent(value)) node.setAttribute(key, value);
  }
  node.append(...children.flat(Infinity).filter(isPresent));
  return node;
}

function isPlain(value) {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function isPresent(value) {
  return value !== null && value !== undefined && value !== false;
}

/** 1 check, 2 checks. */
function counted(number, thing) {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}

/** A symbol with its word: neither stands alone, and colour only repeats them. */
function outcomeMark(outcome, ...more) {
  return element(
    "span",
    { class: `mark ${outcome.key}` },
    element("span.symbol", { "aria-hidden": "true" }, outcome.symbol),
    ` ${outcome.word}`,
    ...more,
  );
}

/** " 1/3" where only one of three checks came out as the cell shows. */
function shareText({ agreeing, checks }) {
  return agreeing < checks ? ` ${agreeing}/${checks}` : "";
}

/** One line of a list of names and values. */
function pair(name, value) {
  return element("div", element("dt", name), element("dd", value));
}

/** A table: headings are texts, rows are lists of whatever a cell may hold. The first cell of a row heads it. */
function table(caption, headings, rows, attributes = {}) {
  return element(
    "div.scroller",
    { tabindex: "0", role: "region", "aria-label": caption },
    element(
      "table.plain",
      { ...attributes },
      element("caption.unseen", caption),
      element(
        "thead",
        element(
          "tr",
          headings.map((text) => element("th", { scope: "col" }, text)),
        ),
      ),
      element(
        "tbody",
        rows.map(([head, ...cells]) =>
          element(
            "tr",
            element("th", { scope: "row" }, head),
            cells.map((cell) => element("td", cell)),
          ),
        ),
      ),
    ),
  );
}

/** A part that is made when it is first opened. */
function unfolding(summary, make, attributes = {}) {
  const details = element(
    "details",
    {
      ...attributes,
      toggle: () => {
        if (details.open && details.childElementCount === 1)
          details.append(...[make()].flat(Infinity).filter(Boolean));
      },
    },
    element("summary", summary),
  );
  if (details.open) details.append(...[make()].flat(Infinity).filter(Boolean));
  return details;
}

/** A text to take away, with the button for it. Where the clipboard is closed to pages from disk, it is selected. */
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
  return element("div.copyable", code, element("button", { type: "button", click: copy }, "Copy"));
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
