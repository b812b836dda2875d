"use strict";
// A picture of the offset axis: where the log starts, is local, is tiered and ends, as far as this cell was asked.
// Nothing is inferred. A point is drawn if a check of this cell answered it, and Apache Kafka's if it was asked too.

/** What ListOffsets asks for by special timestamps. */
const SPECIAL = {
  "-1": "high watermark",
  "-2": "log start",
  "-3": "max timestamp",
  "-4": "local start",
  "-5": "last tiered",
  "-6": "first not tiered",
};

/** Points that are about the log rather than about one record: they stay in the picture of every check of a cell. */
const LANDMARKS = new Set([
  "log start",
  "local start",
  "last tiered",
  "first not tiered",
  "last stable offset",
  "high watermark",
]);

/** Fields of answers to other requests that name an offset of the log. */
const OFFSET_FIELDS = {
  log_start_offset: "log start",
  log_start: "log start",
  low_watermark: "log start",
  high_watermark: "high watermark",
  base_offset: "written at",
  committed_offset: "committed",
  end_offset: "end of epoch",
  first: "first read",
};

/** The points that an answer names, and what it says instead of an offset. */
function pointsOf(check, answer) {
  const points = [];
  const absent = [];
  if (!answer) return { points, absent };
  const fields = new Map(answer);
  const error = fields.get("error") ?? "0";
  const asked = check.asked.match(/timestamp=(-?\d+) \(([^)]*)\)/);
  if (asked && error !== "0") absent.push(`${nameOf(asked, check)}: error ${error}`);
  if (error !== "0") return { points, absent };
  if (asked && fields.has("offset")) {
    if (fields.get("offset").startsWith("-"))
      absent.push(`${nameOf(asked, check)}: no offset (${fields.get("offset")})`);
    else points.push({ name: nameOf(asked, check), offset: fields.get("offset") });
  }
  for (const [field, name] of Object.entries(OFFSET_FIELDS)) {
    const offset = fields.get(field);
    if (offset !== undefined && /^\d+$/.test(offset)) points.push({ name, offset });
  }
  return { points: points.filter((point) => /^\d+$/.test(point.offset)), absent };
}

function nameOf([, timestamp, name], check) {
  if (timestamp === "-1" && /isolation=1\b/.test(check.asked)) return "last stable offset";
  return SPECIAL[timestamp] ?? name;
}

/** An offset that the question itself names. */
function askedPoint(check) {
  const found = check.asked.match(/^(?:Fetch from(?: offset)?|Fetch up to|DeleteRecords before) (\d+)/);
  return found ? found[1] : null;
}

/** The picture for one check, or null where neither it nor its neighbours name an offset. */
function axisPicture(check, checks, backend) {
  const lanes = [
    { label: backend, ...lane(check, checks, (each) => each.observed) },
    {
      label: check.oracle && check.oracle !== backend ? check.oracle : "",
      ...lane(check, checks, (each) => each.oracleObserved),
    },
  ].filter((each) => each.label && (each.points.length || each.absent.length));
  const asked = askedPoint(check);
  const offsets = [
    ...lanes.flatMap((each) => each.points.map((point) => point.offset)),
    ...(asked ? [asked] : []),
  ].map(Number);
  if (!lanes.some((each) => each.points.length)) return null;
  const [low, high] = [Math.min(...offsets), Math.max(...offsets)];
  const [left, width] = [28, 584];
  const at = (offset) => left + (high === low ? width / 2 : ((Number(offset) - low) / (high - low)) * width);
  let top = 8;
  const parts = [];
  for (const each of lanes) {
    const picture = laneParts(each, at, top);
    parts.push(picture.parts);
    top = picture.bottom + 10;
  }
  if (asked) {
    parts.push(
      drawn("line.asked", { x1: at(asked), x2: at(asked), y1: 4, y2: top }),
      drawn(
        "text.asked-label",
        { x: at(asked), y: top + 12, "text-anchor": anchor(at(asked)) },
        `asked for ${asked}`,
      ),
    );
    top += 16;
  }
  const words = lanes.map(
    (each) =>
      `${each.label}: ${[...each.points.map((point) => `${point.name} ${point.offset}`), ...each.absent].join(", ")}`,
  );
  return element(
    "figure.axis",
    drawn(
      "svg",
      {
        viewBox: `0 0 640 ${top}`,
        role: "img",
        "aria-label": `The offset axis. ${words.join(". ")}${asked ? `. Asked for ${asked}` : ""}`,
      },
      parts,
    ),
    element("figcaption", "Offsets as this cell's checks were answered; what was not asked is not drawn."),
  );
}

/** The landmarks that the checks of a cell name, and whatever this check names, each point once. */
function lane(check, checks, answerOf) {
  const own = pointsOf(check, answerOf(check));
  const points = own.points.map((point) => ({ ...point, own: true }));
  for (const other of checks) {
    if (other.id === check.id) continue;
    for (const point of pointsOf(other, answerOf(other)).points) {
      const known = points.some((each) => each.name === point.name && each.offset === point.offset);
      if (LANDMARKS.has(point.name) && !known) points.push({ ...point, own: false, of: question(other) });
    }
  }
  // A story moves on between its questions: where a landmark stood at several places, each says when.
  for (const point of points) {
    const several = points.some((each) => each.name === point.name && each.offset !== point.offset);
    point.label = several && point.of ? `${point.name} (${point.of})` : point.name;
  }
  return { points: points.toSorted((one, other) => Number(one.offset) - Number(other.offset)), absent: own.absent };
}

function laneParts({ label, points, absent }, at, top) {
  const byOffset = [...Map.groupBy(points, (point) => point.offset)];
  const line = top + 24;
  const parts = [drawn("text.lane", { x: 4, y: top + 8 }, label, absent.length ? ` – ${absent.join(", ")}` : "")];
  const landmark = (name) => points.find((point) => point.name === name)?.offset;
  const [start, end, tiered, local] = ["log start", "high watermark", "last tiered", "local start"].map(landmark);
  parts.push(drawn("line.base", { x1: 12, x2: 628, y1: line, y2: line }));
  if (start !== undefined && end !== undefined && Number(end) >= Number(start)) {
    parts.push(
      drawn("rect.log", { x: at(start), y: line - 4, width: Math.max(2, at(end) - at(start)), height: 8, rx: 2 }),
    );
  }
  if (start !== undefined && tiered !== undefined && Number(tiered) >= Number(start)) {
    parts.push(
      drawn("rect.tiered", {
        x: at(start),
        y: line - 4,
        width: Math.max(2, at(tiered) - at(start)),
        height: 4,
        rx: 1,
      }),
    );
  }
  if (local !== undefined && end !== undefined && Number(end) >= Number(local)) {
    parts.push(
      drawn("rect.local", { x: at(local), y: line, width: Math.max(2, at(end) - at(local)), height: 4, rx: 1 }),
    );
  }
  // Labels share a line where they do not touch; six units and a half are a letter of this size.
  const ends = [];
  for (const [offset, here] of byOffset) {
    const text = `${offset} · ${[...new Set(here.map((point) => point.label))].join(", ")}`;
    const side = anchor(at(offset));
    const size = text.length * 6.2;
    const from = side === "start" ? at(offset) : side === "end" ? at(offset) - size : at(offset) - size / 2;
    let level = ends.findIndex((end) => end + 10 < from);
    if (level < 0) level = ends.push(0) - 1;
    ends[level] = from + size;
    const own = here.some((point) => point.own);
    const below = line + 18 + level * 15;
    parts.push(
      drawn("line.lead", { x1: at(offset), x2: at(offset), y1: line, y2: below - 9 }),
      drawn("circle", { class: own ? "point own" : "point", cx: at(offset), cy: line, r: own ? 5.5 : 3.5 }),
      drawn("text", { class: own ? "label own" : "label", x: at(offset), y: below, "text-anchor": side }, text),
    );
  }
  return { parts, bottom: line + 7 + ends.length * 15 };
}

/** Labels near an edge grow inwards. */
function anchor(x) {
  if (x < 120) return "start";
  return x > 520 ? "end" : "middle";
}
