"""The page in a real browser, opened from disk as a reader opens it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import chromium
from page_reports import BUILD, TITLES, hostile_report, large_report, night_report
from playwright.sync_api import Browser, Page, expect
from result_lines import check, footer, header, not_run, write
from whole_runs import ROOT

from conformance import baselines
from offsets import report as command
from reports import page as pages
from reports.model import Report

SCREENSHOTS = ROOT / "out" / "screenshots"
VIEWS = ("matrix", "brokers", "profiles", "alike", "trends")
BROKER = "broker@1.2"
CELL = f"#cell=latest.moves&on={quote(BROKER)}"

# Whatever it would take to run a script from a name or a text, and to turn the reading direction around.
HOSTILE = (
    "</script><script>window.ran = true</script><!-- --> ]]> <img src=x onerror='window.ran = true'>"
    '"><svg onload="window.ran = true"> {{data}} \u202egnp\x1b[31m\x00\u2028'
)
SHOWN = "</script><script>window.ran = true</script>"

# What an address asks for, and the rows that it shows.
ADDRESSES = {
    "#verdict=deviates": ["latest.moves", "earliest.doubtful", "ts.time"],
    "#verdict=deviates&backend=mock": ["ts.time"],
    "#verdict=unsupported&verdict=inconclusive": ["tier.local", "ts.time"],
    "#level=MAY": ["tier.local"],
    "#area=ts&area=tier": ["tier.local", "ts.time"],
    "#q=LOOKUP+time": ["ts.time"],
    "#q=calm": ["latest.calm-1", "latest.calm-2", "earliest.calm-3"],
    "#preset=disagreements": ["tier.local", "latest.moves", "earliest.doubtful", "ts.time"],
    "#preset=odd": ["latest.moves", "earliest.doubtful"],
    "#preset=changed": ["latest.calm-1", "latest.moves", "ts.time"],
    "#preset=flaky": ["latest.flakes"],
    "#preset=disputed": ["earliest.doubtful"],
    "#preset=nonsense&level=nonsense&view=nonsense": [],
}

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("night"), *night_report())


def written(directory: Path, report: Report, details: list) -> Path:
    file = directory / "index.html"
    file.write_text(pages.render(report, details, TITLES), encoding="utf-8")
    return file


@pytest.fixture
def open_page(browser: Browser, night: Path) -> Iterator[Open]:
    """Opens a page from disk. At the end none may have logged an error or asked for anything but its file."""
    complaints: list[str] = []
    asked: list[str] = []
    contexts = []

    def open_it(address: str = "", file: Path = night, scheme: str = "light", width: int = 1400) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url.partition("#")[0]))
        page.goto(file.as_uri() + address)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in asked if not url.endswith("/index.html")] == []


def scenarios(page: Page) -> list[str]:
    return page.locator("[role=grid] .scenario").all_inner_texts()


def unfold(page: Page) -> None:
    """Open everything in the drawer; a check has its wire only once it is open itself."""
    for _ in range(2):
        page.evaluate("document.querySelectorAll('#drawer details').forEach((part) => { part.open = true; })")
        page.evaluate("new Promise(requestAnimationFrame)")


def cell(page: Page, scenario: str, backend: str) -> object:
    return page.locator(f'td[data-scenario="{scenario}"][data-backend="{backend}"]')


def test_the_page_tells_what_changed_before_anything_else(open_page: Open) -> None:
    page = open_page()
    expect(page.locator("main h2").first).to_have_text("What changed")
    expect(page.locator(".changes .tally")).to_have_text(["1 regression", "1 undecided", "1 fixed"])
    first = page.locator(".changes li").first
    expect(first).to_contain_text("latest.moves:latest on broker@1.2: conforms → deviates")
    expect(first).to_contain_text("moved: broker version, broker build")
    expect(page.locator(".absent")).to_contain_text("the image vendor/absent:1 is not there")
    expect(page.locator(".safety")).to_contain_text("✗ not safe 1/2")


def test_a_page_without_history_says_how_to_get_one(open_page: Open, tmp_path: Path) -> None:
    report, details = night_report()
    page = open_page(file=written(tmp_path, Report(report.matrix, (), (), None), details))
    expect(page.locator(".changes")).to_contain_text("There is no history yet. offsets nightly keeps one")


def test_every_cell_has_a_symbol_and_a_word_and_a_column_that_did_not_run_its_reason(open_page: Open) -> None:
    page = open_page()
    expect(cell(page, "latest.moves", BROKER)).to_have_text("✗ deviates 1/2regression, alone")
    expect(cell(page, "latest.flakes", "mock")).to_contain_text("flaky 11 %")
    expect(cell(page, "latest.moves", "absent")).to_have_text("∅ not run")
    expect(page.locator("thead th").last).to_contain_text("∅ not run: the image vendor/absent:1 is not there")
    texts = page.locator("[role=grid] td").all_inner_texts()
    assert {text.split()[0] for text in texts} == {"✓", "✗", "?", "–", "○", "∅"}
    assert all(text.split()[1] for text in texts)


def test_rows_where_everybody_conforms_fold_away_with_a_count_until_they_are_asked_for(open_page: Open) -> None:
    page = open_page()
    assert "latest.calm-2" not in scenarios(page)
    expect(page.locator(".count")).to_have_text("6 scenarios shown of 8, 2 where everybody conforms folded away")
    fold = page.get_by_role("button", name="1 conform everywhere").first
    expect(fold).to_have_attribute("aria-expanded", "false")
    fold.click()
    assert "latest.calm-2" in scenarios(page)
    assert page.url.endswith("#open=latest")
    expect(fold).to_be_focused()
    expect(page.locator("tr.group").nth(1)).to_contain_text("Latest (timestamp -1)")


def test_an_address_shows_the_rows_that_it_asks_for(open_page: Open, night: Path) -> None:
    page = open_page()
    for address, shown in ADDRESSES.items():
        page.goto(night.as_uri() + address)
        assert scenarios(page) == shown, address


def test_each_filter_goes_into_the_address_and_back_takes_it_out_again(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="✗ deviates").click()
    page.get_by_role("button", name="MUST", exact=True).click()
    page.get_by_text("Areas: all").click()
    page.get_by_label("Lookup by time").check()
    assert page.url.endswith("#verdict=deviates&level=MUST&area=ts")
    assert scenarios(page) == ["ts.time"]
    expect(page.get_by_role("button", name="MUST", exact=True)).to_have_attribute("aria-pressed", "true")
    page.go_back()
    assert scenarios(page) == ["latest.moves", "ts.time"]
    page.go_back()
    expect(page.get_by_role("button", name="MUST", exact=True)).to_have_attribute("aria-pressed", "false")
    page.go_forward()
    page.get_by_role("button", name="Clear all filters").click()
    assert len(scenarios(page)) == 6


def test_backends_that_are_not_chosen_have_no_column(open_page: Open) -> None:
    page = open_page(f"#backend=mock&backend={quote(BROKER)}")
    assert page.locator("thead .name").all_inner_texts() == ["broker", "mock"]


def test_typing_searches_and_does_not_fill_the_history_of_the_browser(open_page: Open) -> None:
    page = open_page("#level=MUST")
    page.keyboard.press("/")
    page.keyboard.type("moves", delay=5)
    expect(page.locator("[role=grid] .scenario")).to_have_text(["latest.moves"])
    assert page.url.endswith("#level=MUST&q=moves")
    assert page.evaluate("history.length") == 2  # the empty tab, and the page
    page.locator("#search").fill("nothing like that")
    expect(page.locator(".matrix")).to_contain_text("No scenario is like that.")


def test_the_drawer_tells_everything_about_a_cell(open_page: Open) -> None:
    page = open_page()
    cell(page, "latest.moves", BROKER).click()
    drawer = page.get_by_role("dialog", name="One record moves latest")
    expect(drawer).to_be_visible()
    for text in (
        "A consumer misses a record.",
        "KIP-79",
        "offset is 3 instead of 5",
        "ListOffsets v7 timestamp=-1 (latest)",
        "error=0 offset=5",
        "error=0 offset=3 timestamp=-1",
        "apache-kafka@4.3.1, same run",
        "regression latest.moves:latest: conforms → deviates; moved: broker version, broker build",
        "latest.moves:latest deviated in 1 of 18 runs, first 2026-11-18 08:00",
        "pytest 'suites/test_latest.py::test_it' --backend broker@1.2",
        "offsets show 20261118T080000Z-abc123 latest.moves broker@1.2",
    ):
        expect(drawer).to_contain_text(text)
    expect(drawer.locator("mark")).to_have_text("offset=3")
    drawer.get_by_text("On the wire").first.click()
    expect(drawer.locator(".request").first).to_contain_text("name=conformance-1")
    expect(drawer.locator(".sources, .axis, .wire").first).to_be_visible()


def test_the_axis_shows_only_what_was_asked_of_this_cell_and_of_kafka(open_page: Open) -> None:
    picture = open_page(CELL).locator(".axis svg").first
    label = picture.get_attribute("aria-label")
    assert label == (
        "The offset axis. broker@1.2: log start 0, high watermark 3. apache-kafka@4.3.1: log start 0, high watermark 5"
    )
    expect(picture.locator(".point.own")).to_have_count(2)
    expect(picture.locator("text.label")).to_have_text(
        ["0 · log start", "3 · high watermark", "0 · log start", "5 · high watermark"]
    )


def test_the_flake_of_a_cell_is_told_with_its_interval(open_page: Open) -> None:
    drawer = open_page("#cell=latest.flakes&on=mock").locator("#drawer")
    expect(drawer).to_contain_text("2 of 18 runs were unlike the others, 11 % (3 % to 33 % with 95 % confidence)")


def test_the_baseline_entry_of_a_cell_is_one_that_the_suite_accepts(open_page: Open) -> None:
    page = open_page(CELL)
    entry = page.get_by_label("Baseline entry").inner_text()
    known = baselines.parse(f'backend = "broker"\n\n{entry}').known
    assert known == (baselines.Known("deviates", ("latest.moves:latest",), "offset is 3 instead of 5"),)
    whole = open_page("#cell=tier.local&on=mock").get_by_label("Baseline entry").inner_text()
    assert tomllib.loads(whole)["known"][0]["ids"] == ["tier.local"]
    flaky = open_page("#cell=latest.flakes&on=mock").get_by_label("Baseline entry").inner_text()
    assert baselines.parse(f'backend = "mock"\n\n{flaky}').known[0].ids == ("latest.flakes:latest",)
    assert open_page("#cell=latest.flakes&on=broker%401.2").get_by_label("Baseline entry").count() == 0


def test_what_is_to_be_taken_away_can_be_copied(open_page: Open) -> None:
    page = open_page(CELL)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.locator(".copyable button").first
    button.click()
    expect(button).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("pytest 'suites/test_latest.py::test_it'")


def test_escape_closes_the_drawer_and_the_focus_returns_to_its_cell(open_page: Open) -> None:
    page = open_page()
    cell(page, "latest.moves", BROKER).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#drawer-title")).to_be_focused()
    assert page.url.endswith(CELL)
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).to_be_hidden()
    expect(cell(page, "latest.moves", BROKER)).to_be_focused()
    assert "cell=" not in page.url
    page.go_back()
    expect(page.locator("#drawer")).to_be_visible()
    page.go_back()
    expect(page.locator("#drawer")).to_be_hidden()


def test_a_cell_that_did_not_run_says_why(open_page: Open) -> None:
    expect(open_page("#cell=latest.moves&on=absent").locator("#drawer")).to_contain_text("cannot be pulled")


def test_arrow_keys_move_through_the_grid_which_is_one_stop_of_the_tab_key(open_page: Open) -> None:
    page = open_page()
    expect(page.locator('[role=grid] td[tabindex="0"]')).to_have_count(1)
    page.locator('[role=grid] td[tabindex="0"]').focus()
    for key, scenario, backend in (
        ("ArrowRight", "tier.local", "apache-kafka@3.9.2"),
        ("ArrowDown", "latest.calm-1", "apache-kafka@3.9.2"),  # over the title of an area
        ("End", "latest.calm-1", "absent"),
        ("ArrowRight", "latest.calm-1", "absent"),  # the edge
        ("ArrowUp", "tier.local", "absent"),
        ("Home", "tier.local", "apache-kafka@4.3.1"),
        ("Control+End", "ts.time", "absent"),
        ("PageUp", "tier.local", "absent"),
    ):
        page.keyboard.press(key)
        expect(cell(page, scenario, backend)).to_be_focused()
    expect(page.locator('[role=grid] td[tabindex="0"]')).to_have_count(1)


def test_the_row_and_the_column_of_a_cell_light_up(open_page: Open) -> None:
    page = open_page()
    cell(page, "latest.moves", "mock").hover()
    expect(page.locator("thead th.crossed .name")).to_have_text("mock")
    expect(page.locator("col.crossed")).to_have_count(1)


def test_a_question_mark_shows_the_keys_and_digits_change_the_view(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("move in the matrix")
    page.keyboard.press("Escape")
    page.keyboard.press("5")
    expect(page.locator("main h2").first).to_have_text("Trends")
    assert page.url.endswith("#view=trends")


def test_a_broker_has_a_view_with_its_build_its_profiles_and_what_deviates(open_page: Open) -> None:
    page = open_page(f"#view=brokers&broker={quote(BROKER)}")
    main = page.locator("main")
    for text in (BUILD, "sha256:4f4f", "complete", "What deviates 1", "latest.moves", "✗ not safe 1/2"):
        expect(main).to_contain_text(text)
    page.locator(".outcome-list a").first.click()
    expect(page.locator("#drawer-title")).to_have_text("One record moves latest")
    page.keyboard.press("Escape")
    expect(page.locator(".outcome-list a").first).to_be_focused()
    expect(open_page("#view=brokers&broker=absent").locator(".facts-list")).to_contain_text("cannot be pulled")


def test_a_profile_has_a_view_with_what_fails_and_what_that_does(open_page: Open) -> None:
    page = open_page("#view=profiles&profile=ingest%401")
    expect(page.locator("main")).to_contain_text("what ingest storage relies on")
    broker = page.locator("details.profile", has_text=BROKER)
    expect(broker).to_contain_text("latest.moves ✗ deviates")
    expect(broker).to_contain_text("A consumer misses a record.")


def test_who_answers_alike_has_a_view_with_the_odd_one_out(open_page: Open) -> None:
    main = open_page("#view=alike").locator("main")
    expect(main).to_contain_text("broker@1.2alone in 1 scenario")
    expect(main.locator(".likeness tbody tr").first).to_contain_text("7/8")
    expect(main).to_contain_text("Where answers part: 4 scenarios of 8")


def test_trends_are_charts_with_the_same_numbers_as_tables(open_page: Open) -> None:
    page = open_page("#view=trends")
    chart = page.locator("figure.chart", has_text="broker@1.2: 18 nights")
    assert (chart.locator("path.bar.deviates").get_attribute("d") or "").count("M") == 18
    chart.get_by_text("As a table").click()
    expect(chart.locator("tbody tr").last).to_contain_text("2026-11-18 08:00")
    expect(chart.locator("tbody tr").last.locator("td").first).to_have_text("2")
    expect(page.locator("main")).to_contain_text("apache-kafka: 2 versions, oldest first")
    change = page.locator("details", has_text="apache-kafka 3.9.2 → 4.3.1")
    expect(change).to_contain_text("– unsupported → ✓ conforms1 check")
    change.locator("summary").click()
    expect(change.locator("li")).to_have_text(["ts.time:latest"])


def test_light_and_dark_follow_the_system_and_a_button_overrides_it(open_page: Open) -> None:
    page = open_page(scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    theme = page.locator("#theme")
    theme.click()
    expect(theme).to_have_text("Theme: light")
    assert page.evaluate(ground) != dark
    page.reload()
    expect(theme).to_have_text("Theme: light")
    theme.click()
    expect(theme).to_have_text("Theme: dark")
    assert page.evaluate(ground) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", [*(f"#view={view}" for view in VIEWS), CELL])
def test_no_reader_is_kept_out(open_page: Open, address: str, scheme: str) -> None:
    page = open_page(address, scheme=scheme)
    unfold(page)
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
    found = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("view", VIEWS)
def test_whatever_a_broker_sent_is_text(open_page: Open, tmp_path: Path, view: str) -> None:
    page = open_page(f"#view={view}", file=written(tmp_path, *hostile_report(HOSTILE)))
    page.evaluate("document.querySelectorAll('main details:not(.menu)').forEach((part) => { part.open = true; })")
    expect(page.locator("main")).to_contain_text(SHOWN)
    if view == "matrix":
        page.locator("td.deviates").nth(1).click()
        unfold(page)
        expect(page.locator("#drawer .request").first).to_contain_text(SHOWN)
        page.reload()
        expect(page.locator("#drawer-title")).to_contain_text(r"\u202egnp\x1b[31m\x00\u2028")
    assert page.evaluate("window.ran") is None
    assert page.locator("img, main script, #drawer script").count() == 0


def test_a_script_that_is_not_the_pages_own_does_not_run(browser: Browser, night: Path, tmp_path: Path) -> None:
    """The second line of defence: even markup that got in is held back by the page's policy."""
    bent = tmp_path / "index.html"
    bent.write_text(night.read_text().replace("<main ", "<script>window.ran = true</script><main ", 1))
    page = browser.new_page()
    page.goto(bent.as_uri())
    assert page.evaluate("window.ran") is None
    expect(page.locator("main h2").first).to_have_text("What changed")
    page.close()


def test_on_paper_nothing_is_pinned_and_no_control_is_left(open_page: Open) -> None:
    page = open_page(scheme="dark")
    page.emulate_media(media="print")
    expect(page.locator(".filters")).to_be_hidden()
    expect(page.locator(".tools")).to_be_hidden()
    expect(page.locator("td.deviates").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('thead th')).position") == "static"
    assert page.evaluate("getComputedStyle(document.querySelector('.matrix')).maxHeight") == "none"
    assert page.pdf().startswith(b"%PDF")


def test_five_hundred_scenarios_of_twenty_backends_open_and_keep_folded_rows_out(
    open_page: Open, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    file = written(tmp_path, *large_report(500, 20, 3))
    assert file.stat().st_size < 10_000_000
    page = open_page(file=file)
    expect(page.locator(".count")).to_have_text("100 scenarios shown of 500, 400 where everybody conforms folded away")
    assert page.locator("[role=grid] td").count() == 100 * 20
    assert page.evaluate("document.querySelectorAll('*').length") < 6000
    drawn = "{ const began = performance.now(); go(%s); document.body.offsetHeight; return performance.now() - began; }"
    figures = {
        "ms until it is drawn": page.evaluate("performance.now()"),
        "ms to show all": page.evaluate("() => " + drawn % "{ open: report.areas.map((area) => area.key) }"),
        "ms to filter": page.evaluate("() => " + drawn % "{ preset: 'odd' }"),
        "ms to open a cell": page.evaluate(
            "() => " + drawn % "{ cell: { scenario: 'tier.scenario-000', backend: 'backend-1@1.1' } }"
        ),
    }
    assert page.locator("#drawer details.check").count() == 3
    for name, figure in figures.items():
        record_property(name, round(figure))
    text = "".join(f"{round(figure):6} {name}\n" for name, figure in figures.items())
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / "500x20.txt").write_text(text)


@pytest.mark.parametrize(
    ("name", "address", "scheme", "width"),
    [
        ("light", "", "light", 1400),
        ("dark", "", "dark", 1400),
        ("drawer", CELL, "light", 1400),
        ("narrow", "", "light", 800),
    ],
)
def test_screenshots_are_left_for_a_person_to_look_at(
    open_page: Open, name: str, address: str, scheme: str, width: int
) -> None:
    page = open_page(address, scheme=scheme, width=width)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=not address)
    assert (SCREENSHOTS / f"{name}.png").stat().st_size > 10_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.usefixtures("spark")
def test_the_report_of_result_files_has_the_page(open_page: Open, tmp_path: Path) -> None:
    kafka = "apache-kafka@4.3.1"
    wire = {
        "api": "list_offsets",
        "version": 7,
        "node": "127.0.0.1:1",
        "request": "{asked}",
        "response": "{said}",
        "ms": 1,
    }
    wrong = {"verdict": "deviates", "observed": {"error": 0, "offset": 2**63 - 1}, "reason": "offset is not 1"}
    write(tmp_path / "a.ndjson", header(kafka, oracle=True), check(kafka), footer(kafka))
    write(tmp_path / "b.ndjson", header(), check(**wrong, evidence=[wire]), footer())
    write(tmp_path / "c.ndjson", not_run("absent", "no such image"))
    command.build([str(tmp_path)], str(tmp_path / "out"), "local[*]", None, "")
    page = open_page("#cell=latest.one-record&on=broker", file=tmp_path / "out" / "report" / "index.html")
    drawer = page.locator("#drawer")
    expect(drawer).to_contain_text("Latest (timestamp -1) on broker")
    expect(drawer).to_contain_text("offset=9223372036854775807")  # to the last digit
    expect(drawer).to_contain_text("apache-kafka@4.3.1, same run")
    drawer.get_by_text("On the wire").click()
    expect(drawer.locator(".response")).to_have_text("{said}")
    expect(page.locator(".absent")).to_contain_text("no such image")
