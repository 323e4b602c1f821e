# SPDX-License-Identifier: Apache-2.0
"""The page of all reports in a browser: layout, links, keyboard, contrast, filters, speed.

Needs the group `report` of pyproject.toml and the Debian package chromium.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

import pytest

from dev.report import render
from dev.report.collect import Places, collect
from tests.dev.report_reader import one_run, outcome_of
from tests.dev.report_support import made
from tests.forms import sample
from tests.needs import needs

needs("report", "chromium")

import axe_playwright_python.sync_playwright as axe
import playwright.sync_api as playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS = (1280, 768, 360)
MOST_SECONDS = 2.0
SERIOUS = ("serious", "critical")

OVERLAPS = """() => {
  const found = [];
  const seen = (one) => one.checkVisibility() && !one.closest('.vh') && one.getClientRects().length;
  const clash = (one, other) => {
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    const name = (box) => box.textContent.trim().slice(0, 40);
    if (x > 1 && y > 1) found.push(`${name(one)} | ${name(other)}`);
  };
  const neighbours = (list) => list.filter(seen).reduce((a, b) => (a && clash(a, b), b), null);
  const blocks = 'h1, .verdict, .lead, dl > div, h2, h3, .top > p, .note, .toc, .failure, summary,'
    + '.scroll, figure, .tool, .absent';
  const all = [...document.querySelectorAll(blocks)].filter(seen)
    .filter((one) => !one.closest('td'));
  for (let i = 0; i < all.length; i++)
    for (const other of all.slice(i + 1, i + 12))
      if (!all[i].contains(other)) clash(all[i], other);
  for (const row of document.querySelectorAll('tr')) neighbours([...row.cells]);
  for (const body of document.querySelectorAll('table'))
    neighbours([...body.rows].map((row) => row.cells[0]));
  return found;
}"""
"""Neighbours whose boxes lie over each other."""
CUT = """() => [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility())
  .filter((one) => !one.closest('.scroll, pre, .vh, svg, .skip'))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.outerHTML.slice(0, 80))"""
"""What begins or ends beyond the right edge of the page, and not in a box of its own."""
SPILT = """() => [...document.querySelectorAll('th, td, dd, summary, a, code')]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .filter((one) => getComputedStyle(one).display !== 'inline')
  .map((one) => one.textContent.slice(0, 60))"""
"""Boxes that are too narrow for what is in them."""
SAMPLE = """() => {
  for (const list of document.querySelectorAll('.part, #failures, tbody'))
    [...list.children].slice(6).filter((one) => !one.className.match(/red|amber/))
      .forEach((one) => one.remove());
  for (const fold of document.querySelectorAll('details')) fold.open = true;
}"""
"""Leaves of each long list its beginning and what stands out: axe takes a minute for thousands."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Return a full regression with its page."""
    places = made(tmp_path_factory.mktemp("regression"))
    render.write(collect(places))
    return places


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a browser."""
    with playwright.sync_playwright() as tool:
        started = tool.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser, places: Places) -> Iterator[Page]:
    """Return the page on a wide screen in light."""
    opened = _open(browser, places)
    yield opened
    opened.context.close()


def _open(
    browser: Browser,
    places: Places,
    width: int = 1280,
    scheme: Scheme = "light",
    *,
    script: bool = True,
) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        java_script_enabled=script,
        bypass_csp=False,
    )
    page = context.new_page()
    page.goto(f"file://{places.reports / render.FILE}")
    return page


def test_it_opens_at_once_without_errors_and_without_the_network(
    browser: Browser, places: Places
) -> None:
    """The file itself is all that is asked for."""
    page = browser.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    costs = page.context.new_cdp_session(page)
    costs.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"file://{places.reports / render.FILE}", wait_until="load")
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [page.url]
    assert page.evaluate("[...document.images].every((one) => one.naturalWidth > 0)")
    # Of the page's thread and of a processor: the work of others beside it does not count.
    counted = {one["name"]: one["value"] for one in costs.send("Performance.getMetrics")["metrics"]}
    assert counted["TaskDuration"] < MOST_SECONDS
    page.close()


def test_what_a_reader_looks_for_is_there(page: Page) -> None:
    """Verdict, failures, what nothing executed, a test, a benchmark."""
    assert page.locator(".verdict").inner_text() == "Failed"
    assert page.locator(".failure").count() == 9
    red = page.locator("#instructions tr.red")
    assert [row.inner_text().split("\t")[0] for row in red.all()] == [
        "MXFP6E3",
        "stream",
        "TIMEOUT",
    ]
    assert page.locator("#tests tbody tr").count() > 400
    assert page.get_by_role("rowheader", name="block_s16", exact=True).count() == 1


def test_every_link_leads_somewhere(page: Page, places: Places) -> None:
    """Within the page to an element, otherwise to a file."""
    links = page.evaluate("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")
    assert len(links) > 15
    for link in links:
        if link.startswith("#"):
            assert page.locator(f"[id='{link[1:]}']").count() == 1, link
        else:
            assert (places.reports / unquote(link)).is_file(), link
    repeated = page.evaluate(
        "() => { const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);"
        " return ids.filter((id, at) => ids.indexOf(id) !== at); }"
    )
    assert repeated == []


@pytest.mark.parametrize("scheme", sample(SCHEMES, 1))
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overlaps_or_is_cut(
    browser: Browser, places: Places, width: int, scheme: Scheme
) -> None:
    """The page does not scroll sideways, with its folds as they are and with all of them open."""
    page = _open(browser, places, width, scheme)
    for folds in ("as they are", "open"):
        if folds == "open":
            page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") == width, folds
        assert page.evaluate(OVERLAPS) == [], folds
        assert page.evaluate(CUT) == [], folds
        assert page.evaluate(SPILT) == [], folds
    page.context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", sample((1280, 360), 1))
def test_contrast_names_and_roles(
    browser: Browser, places: Places, width: int, scheme: Scheme
) -> None:
    """As axe sees them: nothing serious, in a sample of each list with its folds open."""
    page = _open(browser, places, width, scheme)
    page.evaluate(SAMPLE)
    found = axe.Axe().run(page).response["violations"]
    serious = [
        (one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"])
        for one in found
        if one["impact"] in SERIOUS
    ]
    assert serious == []
    page.context.close()


def _focused(page: Page) -> str:
    text: str = page.evaluate("document.activeElement.textContent.trim().replace(/\\s+/g, ' ')")
    return text


def test_a_walk_by_keyboard(page: Page) -> None:
    """Skip link, sections, a fold that Enter opens, all with a visible focus."""
    page.keyboard.press("Tab")
    assert _focused(page) == "Skip to the results"
    box = page.locator(".skip").bounding_box()
    assert box is not None
    assert box["y"] >= 0
    stops = []
    for _ in range(11):
        page.keyboard.press("Tab")
        stops.append(_focused(page))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert stops[0] == "Failures 9"
    assert stops[-1].startswith("Sources")
    page.keyboard.press("Tab")
    assert _focused(page) == "The whole message"
    fold = page.locator(".failure details").first
    assert fold.get_attribute("open") is None
    page.keyboard.press("Enter")
    assert fold.get_attribute("open") is not None
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "PRE"


def test_the_skip_link_skips(page: Page) -> None:
    """The next stop is in the first section."""
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('section').id") == "failures"


def test_only_boxes_that_scroll_are_stops(browser: Browser, places: Places) -> None:
    """Wide tables on a narrow screen, none of the narrow ones on a wide screen."""
    counts = {}
    for width in (1280, 360):
        page = _open(browser, places, width)
        page.wait_for_timeout(100)
        states = page.evaluate(
            "[...document.querySelectorAll('.scroll')].filter((one) => one.checkVisibility())"
            ".map((one) => [one.scrollWidth > one.clientWidth, one.tabIndex === 0])"
        )
        assert all(scrolls == stops for scrolls, stops in states)
        counts[width] = sum(stops for _, stops in states)
        page.context.close()
    assert counts[360] > counts[1280]


def test_a_filter_shows_what_contains_all_words(page: Page) -> None:
    """It opens the folds that have some, says how many, and puts all back."""
    before = page.locator("#tests tr:visible").count()
    page.get_by_label("Filter tests").fill("gemm random")
    status = page.locator("#tests [role=status]")
    playwright.expect(status).to_contain_text(" lines")
    shown = page.locator("#tests tbody tr:visible")
    assert shown.count() >= 1
    assert all("gemm" in row.inner_text() for row in shown.all())
    assert status.inner_text().startswith(f"{shown.count()} of ")
    page.get_by_label("Filter tests").fill("")
    playwright.expect(status).to_be_empty()
    assert page.locator("#tests tr:visible").count() == before
    page.get_by_label("Filter uses and tests").fill("gemm mxfp6e3")
    playwright.expect(page.locator("#instructions [role=status]")).to_contain_text("1 of ")
    assert page.locator("#instructions tbody tr:visible").count() == 1


def test_a_click_on_a_head_sorts(page: Page) -> None:
    """Numbers as numbers, the largest first, then the smallest; what is sorted is announced."""
    table = page.locator("#benches table").first
    head = table.locator("th").nth(2)
    assert head.inner_text() == "Cycles"
    for order in ("descending", "ascending"):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == order
        cells = table.locator("tbody tr td:nth-child(3)").all_inner_texts()
        numbers = [int(cell.replace(",", "")) for cell in cells]
        assert numbers == sorted(numbers, reverse=order == "descending")
        assert len(numbers) > 90


def test_a_command_is_copied(browser: Browser, places: Places) -> None:
    """By its button, into the clipboard."""
    page = _open(browser, places)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    command = page.locator(".failure code.command").first.inner_text()
    page.get_by_role("button", name=f"Copy: {command}").first.click()
    playwright.expect(page.locator(".copy").first).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == command
    page.context.close()


def test_a_link_into_a_closed_fold_opens_it(page: Page) -> None:
    """For example to a test that passed."""
    anchor = page.locator("#tests details:not([open]) tr[id]").first.get_attribute("id")
    row = page.locator(f"[id='{anchor}']")
    assert not row.is_visible()
    page.goto(f"{page.url.split('#')[0]}#{anchor}")
    assert row.is_visible()


def test_it_is_whole_without_its_script(browser: Browser, places: Places) -> None:
    """Folds open by themselves; what only the script can do is not shown."""
    page = _open(browser, places, script=False)
    assert page.locator(".failure").count() == 9
    assert not page.locator(".tool").first.is_visible()
    assert page.locator(".copy").count() == 0
    fold = page.locator("#tests details:not([open])").first.element_handle()
    table = fold.query_selector("table")
    assert not table.is_visible()
    fold.query_selector("summary").click()
    assert table.is_visible()
    page.context.close()


def test_on_paper_there_are_no_controls(page: Page) -> None:
    """And black on white, also where the screen is dark."""
    page.emulate_media(media="print", color_scheme="dark")
    for control in (".toc", ".tool", ".copy", ".skip"):
        assert not page.locator(control).first.is_visible()
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(colour) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", sample(WIDTHS, 1))
def test_a_page_about_nothing_is_well_made_too(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    """One without any report, and one of a run that passed."""
    empty = Places(tmp_path / "none.sqlite", tmp_path / "empty", tmp_path)
    for places in (empty, one_run(tmp_path, [outcome_of()])):
        render.write(collect(places))
        page = _open(browser, places, width)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(OVERLAPS) == []
        assert page.evaluate(CUT) == []
        found = axe.Axe().run(page).response["violations"]
        assert [one["id"] for one in found if one["impact"] in SERIOUS] == []
        page.context.close()
