"""The matrix as JUnit XML, which every CI system can show: a suite per backend, a case per scenario.

For: `render`, a pure function. Left to others: writing the file.
"""

from xml.etree import ElementTree as Xml

from reports import words
from reports.model import NOT_RUN, Column, Deviation, Report, Row
from reports.words import NAME_LENGTH, TEXT_LENGTH, clean


def render(report: Report) -> str:
    """One XML document that ends with a newline; nothing that a broker sent is markup in it."""
    matrix = report.matrix
    deviations: dict[tuple[str, str], list[Deviation]] = {}
    for deviation in matrix.deviations:
        deviations.setdefault((deviation.backend, deviation.scenario), []).append(deviation)
    root = Xml.Element("testsuites", name="offset conformance")
    for place, column in enumerate(matrix.columns):
        cases = [_case(row, column, place, deviations.get((column.backend, row.scenario), [])) for row in matrix.rows]
        kinds = [child.tag for case in cases for child in case]
        suite = Xml.SubElement(
            root,
            "testsuite",
            name=clean(column.backend, NAME_LENGTH),
            tests=str(len(cases)),
            failures=str(kinds.count("failure")),
            errors=str(kinds.count("error")),
            skipped=str(kinds.count("skipped")),
            timestamp=clean(column.started or "", NAME_LENGTH),
        )
        suite.extend(cases)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(row: Row, column: Column, place: int, deviations: list[Deviation]) -> Xml.Element:
    name = clean(row.scenario, NAME_LENGTH)
    case = Xml.Element("testcase", classname=f"{clean(column.backend, NAME_LENGTH)}.{row.family}", name=name)
    case.set("classname", clean(case.get("classname", ""), 2 * NAME_LENGTH))
    outcome = row.cells[place].outcome
    meaning = words.MEANINGS[outcome]
    match outcome:
        case "conforms":
            pass
        case "deviates":
            failure = Xml.SubElement(case, "failure", message=f"{row.level}: {clean(row.title, TEXT_LENGTH)}")
            failure.text = "\n".join(
                f"{clean(deviation.check, NAME_LENGTH)}: {label}: {clean(text, TEXT_LENGTH)}"
                for deviation in deviations
                for label, text in words.deviation_fields(deviation)
            )
        case "inconclusive" | "broken":
            Xml.SubElement(case, "error", message=meaning)
        case _:
            why = "; ".join(column.reasons) if outcome == NOT_RUN else ""
            Xml.SubElement(case, "skipped", message=clean(f"{outcome}: {why or meaning}", TEXT_LENGTH))
    return case
