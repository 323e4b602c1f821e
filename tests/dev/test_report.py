# SPDX-License-Identifier: Apache-2.0
"""The page of all reports: what it says, what it says of missing and broken reports, its size."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dev.regression.task import Outcome, Status, Task
from dev.report import render
from dev.report.collect import Page, Places, collect
from dev.report.executed import areas
from dev.report.history import flaky, history, trends
from dev.report.store import RunResults
from tests.dev.report_reader import Reader, one_run, outcome_of
from tests.dev.report_support import (
    HOSTILE,
    ONLY_FAILED,
    UNSEEN,
    made,
    planned,
    write_results,
)

MOST_BYTES = 5_000_000
ROW = "GEMM"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Return a regression as large as a full one."""
    return made(tmp_path_factory.mktemp("regression"))


@pytest.fixture(scope="module")
def page(places: Places) -> Page:
    """Return what there is to show of it."""
    return collect(places)


@pytest.fixture(scope="module")
def html(page: Page) -> str:
    """Return its page."""
    return render.render(page)


@pytest.fixture(scope="module")
def read(html: str) -> Reader:
    """Return the page as it is read."""
    return Reader(html)


def test_the_head_says_what_ran_and_how_it_ended(read: Reader) -> None:
    """Verdict, run, tier, time, counts, revision, seeds, host."""
    text = read.text
    assert "Tessera, report of the regression Failed Run 13 of tier full, 2026-03-14 02:00" in text
    planned_count = f"{len(planned(3)):,}"
    assert f"of {planned_count} planned Failed 9 see below Not run 3" in text
    assert "with changes" in text
    assert "Seeds 1, 2, 3" in text
    assert "Host build-7.example" in text
    assert "worker tcp://10.0.0.7:8786 was lost" in text


def test_every_failure_has_message_repeat_line_and_waves(page: Page, read: Reader) -> None:
    """Also what the test printed and the end of its log."""
    assert page.failures.value is not None
    assert page.failures.value.count == 9
    for failure in page.failures.value.whole:
        assert failure.result.repeat in read.text
        assert failure.result.waves in read.text
    assert read.text.count("RunMismatchError: instruction 289") >= 9
    assert "6067 of 52119 written words differ" in read.text
    assert "cocotb says" in read.text
    assert read.text.count("(not there any more)") == 4


def test_every_use_is_there_and_what_nothing_executed_stands_out(html: str, read: Reader) -> None:
    """A row in red for each of these, also for the one that only failing tests executed."""
    total = sum(len(rows) for rows in areas().values())
    assert len(re.findall(r"<tr data-group=", html)) >= total
    missing = [*UNSEEN, ONLY_FAILED]
    assert f"{len(missing)} uses not executed:" in read.text
    for row in missing:
        opcode, _, use = row.partition(" ")
        assert f'<tr data-group="{opcode}" class="red"><th scope="row" class="w">{use}</th>' in html
    assert f"{ONLY_FAILED} (only by a test that failed)" in read.text


def test_a_use_names_its_tests_with_their_verdicts(tmp_path: Path) -> None:
    """Those that failed first; these do not count as having executed it."""
    names = ("test_dma_random", "test_vec_random", "test_gemm_random")
    outcomes = [outcome_of(name, rows=(ROW,)) for name in names[:2]]
    outcomes.append(outcome_of(names[2], "it broke", (ROW,)))
    text = Reader(render.render(collect(one_run(tmp_path, outcomes)))).text
    assert (
        "2 passed, 1 failed failed: test_gemm_random passed: test_dma_random 4, test_vec_random 4"
        in text
    )
    assert "executed 8 6 1" in text


def test_every_test_is_there_with_verdict_seeds_seconds_cycles(page: Page, read: Reader) -> None:
    """Each once, in the group of its module, with the first line of its docstring."""
    assert page.features.value is not None
    lines = [line for feature in page.features.value for line in feature.tests]
    assert len(lines) == len({(task.kind, task.name) for task in planned(3)})
    anchors = {attributes.get("id") for attributes in read.all("tr")}
    assert {line.anchor for line in lines} <= anchors
    gemm = next(one for one in page.features.value if (one.kind, one.name) == ("rtl", "gemm"))
    line = next(one for one in gemm.tests if one.name == "test_gemm_random")
    assert line.about.summary in read.text
    assert f"{line.cycles:,}" in read.text


def test_benches_quality_synthesis_and_the_others_are_there(read: Reader) -> None:
    """A line of each, and what misses its bar."""
    for said in (
        "Over their limit: block_s16.",
        "Worse than their bars: qwen2-tiny.",
        "gemm_stream_m128",
        "qkv=mxfp6e2,o=int4g32,up=mxfp6e2,down=int4g32",
        "npu_systolic_array ArrayDim 16",
        "142 of 143 faults are noticed by their test. Unnoticed: 77-a-fault-with-a-name.",
        "exp_float32 none 4,294,967,296",
        "port 46,646 0.019 % 143 60 done",
        "vec npu_vec 21.3 38.9",
        "54,656 bytes, 1.0023 times the 54,528 necessary ones",
    ):
        assert said in read.text, said
    pictures = [one["src"] or "" for one in read.all("img")]
    assert len(pictures) == 3
    assert all(source.startswith("data:image/png;base64,") for source in pictures)
    assert all(one["alt"] and one["width"] and one["height"] for one in read.all("img"))


def test_code_coverage_links_to_its_pages(read: Reader) -> None:
    """Modules with few lines executed stand out; a module without a page has no link."""
    links = {attributes.get("href") for attributes in read.all("a")}
    assert {"coverage/index.html", "coverage/npu_gemm.html"} <= links
    assert "coverage/npu_vec.html" not in links
    assert "npu_streamer few lines executed" in read.text
    assert "Lines 79.2 % (1,585 of 2,000), branches 74.5 %" in read.text


def test_the_history_shows_runs_changes_and_flaky_tests(page: Page, read: Reader) -> None:
    """The runs before, sparklines, what passed and failed with the same sources, retries."""
    assert page.history.value is not None
    assert [run.number for run in page.history.value.runs] == list(range(13, 0, -1))
    assert page.history.value.cycles
    assert all(0.01 < one.change < 0.061 for one in page.history.value.cycles)
    assert len(read.all("svg")) >= 1 + len(page.history.value.cycles)
    assert "passed in run 12 but failed in run 13, same sources 5a5a5a5a5a" in read.text
    assert "passed in run 13 on attempt 2" in read.text


def test_texts_of_reports_are_no_html(html: str, read: Reader) -> None:
    """What looks like a script is a text, and so is what looks like a template."""
    assert "<script>alert" not in html
    assert len(read.all("script")) == 1
    assert html.count("</body>") == 1
    assert "{{ 7 * 7 }}" in html
    assert HOSTILE in " ".join(read.words)


def test_the_page_loads_nothing(read: Reader) -> None:
    """No address in it leads out, and a policy forbids it."""
    for tag, attributes in read.elements:
        for name in ("src", "href", "action", "data"):
            address = attributes.get(name) or ""
            assert not re.match(r"(https?:)?//", address), (tag, address)
    policies = [one for one in read.all("meta") if one.get("http-equiv")]
    assert "default-src 'none'" in (policies[0]["content"] or "")


def test_a_full_regression_is_small(html: str) -> None:
    """With 1,300 results, 600 rows and 13 runs."""
    assert len(html.encode()) < MOST_BYTES / 2


def test_a_chip_that_fails_every_test_still_gives_a_small_page(tmp_path: Path) -> None:
    """The first failures are whole, the others a line each."""
    places = Places(tmp_path / "results.sqlite", tmp_path / "reports", tmp_path)
    write_results(places.results, runs=1, failures=1125)
    page = collect(places)
    assert page.failures.value is not None
    assert page.failures.value.count == 1125
    text = render.render(page)
    assert len(text.encode()) < MOST_BYTES
    for failure in page.failures.value.others:
        assert failure.result.task.name in text


@pytest.mark.parametrize(
    ("message", "complete", "state", "verdict"),
    [
        ("", False, "finished", "passed"),
        ("", True, "finished", "failed"),
        ("it broke", False, "finished", "failed"),
        ("", False, "interrupted", "interrupted"),
        ("it broke", False, "running", "running"),
    ],
)
def test_the_verdict(
    tmp_path: Path, message: str, complete: bool, state: str, verdict: str
) -> None:
    """A complete run must also execute every use of the instruction set."""
    places = one_run(tmp_path, [outcome_of("test_x", message)], complete=complete, state=state)
    assert collect(places).verdict == verdict


def test_a_run_before_can_be_shown(places: Places) -> None:
    """By its number, as it was then."""
    page = collect(places, 4)
    assert page.verdict == "interrupted"
    assert page.store.value is not None
    assert len(page.store.value.runs) == 4
    assert collect(places, 99).store.problem == "no run in it has the number 99"


def _run(number: int, results: list[Outcome], tree: str = "") -> RunResults:
    return RunResults(
        number=number,
        begun="",
        ended="",
        state="finished",
        tier="full",
        options={},
        tree=tree or str(number),
        revision="",
        dirty=False,
        host="",
        seconds=60.0,
        planned=len(results),
        results=tuple(results),
    )


def _ended(seed: int, cycles: int, status: Status = "passed", attempt: int = 1) -> Outcome:
    return Outcome(Task("rtl", "t", "m", seed), status, "", 5.0, cycles, attempt=attempt)


def test_a_trend_compares_the_same_seeds_only() -> None:
    """A run that lacks a seed, or in which one failed, has no point."""
    runs = [
        _run(1, [_ended(1, 100), _ended(2, 200)]),
        _run(2, [_ended(1, 900)]),
        _run(3, [_ended(1, 100), _ended(2, 9, "failed")]),
        _run(4, [_ended(1, 100), _ended(2, 202), _ended(3, 7)]),
        _run(5, [_ended(1, 130), _ended(2, 200)]),
    ]
    (trend,) = trends(runs, "cycles")
    assert trend.values == (300, None, None, 302, 330)
    assert trend.before == 301
    assert trend.change == pytest.approx(330 / 301 - 1)
    assert not trends(runs, "seconds")
    assert not trends(runs[:1], "cycles")


def test_minutes_are_those_of_runs_of_the_same_kind() -> None:
    """A smoke tier beside full ones, or coverage, would make a line that says nothing."""
    runs = [
        replace(_run(1, []), seconds=2400.0),
        replace(_run(2, []), seconds=480.0, tier="smoke"),
        replace(_run(3, []), seconds=5000.0, options={"cov": True}),
        replace(_run(4, []), seconds=2460.0),
    ]
    assert history(runs).minutes == (40.0, 41.0)


def test_flaky_is_what_differs_with_the_same_sources() -> None:
    """A failure after a change of the sources is none."""
    runs = [
        _run(1, [_ended(1, 1), _ended(2, 1), _ended(3, 1)], "a" * 64),
        _run(2, [_ended(1, 1, "failed"), _ended(2, 1), _ended(3, 1, attempt=2)], "a" * 64),
        _run(3, [_ended(2, 1, "failed")], "b" * 64),
    ]
    assert [(one.key, one.reasons) for one in flaky(runs)] == [
        ("rtl/m/t/1/short", ("passed in run 1 but failed in run 2, same sources aaaaaaaaaa",)),
        ("rtl/m/t/3/short", ("passed in run 2 on attempt 2",)),
    ]


def test_figures_are_written_as_they_are_read() -> None:
    """What is not all of it does not read 100 %."""
    assert render.number(1234567.8) == "1,234,568"
    assert [render.share(share) for share in (0.5, 0.99999, 1.0)] == ["50.0 %", "99.9 %", "100.0 %"]
    assert [render.change(0.051), render.change(-0.051)] == ["+5.1 %", "\u22125.1 %"]
    spans = [render.span(seconds) for seconds in (0.421, 84.24, 723, 7501)]
    assert spans == ["0.42 s", "84.2 s", "12 min 3 s", "2 h 5 min"]
    assert "M0 22L32 2M96 12L128 10" in render.spark([1, 2, None, 1.5, 1.6], "cycles")
    assert render.spark([1, None], "cycles") == ""


def test_a_link_leads_to_a_file_or_is_none(places: Places, page: Page) -> None:
    """A name with blanks and signs is escaped."""
    odd = places.root / "build" / "a b#c.gtkw"
    odd.write_text("", encoding="utf-8")
    assert render.link(page, "build/a b#c.gtkw") == "../a%20b%23c.gtkw"
    assert render.link(page, "build/none.gtkw") == ""
    assert render.link(page, "") == ""
    assert render.link(page, "x" * 5000) == ""
