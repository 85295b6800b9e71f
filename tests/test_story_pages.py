"""Each slide that is told from rows, beside the page that it opens: the same numbers on both."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape

import pytest
from story_pages import (
    NUMBER,
    ROUNDED,
    figure_of,
    matches_rounded,
    numbers,
    open_live,
    pin_page,
    rounded_values,
    strip_markdown,
    tables_of,
    text_of,
    trace_data,
    tradeoff_rows_of,
)
from streamlit.testing.v1 import AppTest

from leakscope.core.defences.setting import entry_shown
from leakscope.core.figures.representations import encoder_title
from leakscope.core.figures.tradeoff import format_attacker
from leakscope.core.findings.finding import WEAKER, Finding
from leakscope.core.findings.registry import VIEWS, build_view
from leakscope.core.formatting import format_auc
from leakscope.core.results import Score
from leakscope.core.studies.leak_figures import leak_figures
from leakscope.core.studies.tradeoff.choice import simultaneous_leaks
from leakscope.core.studies.tradeoff.summary import FRESH, measured_etas, shipped_tradeoff
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.membership import state as membership


def check_whole(slide: Finding, page: AppTest) -> None:
    """The body's numbers stand on the page, and every trace of the slide is in one of its charts.

    A page may add what compares, such as a point of a paper.
    """
    on_page = set(NUMBER.findall(text_of(page)))
    assert set(NUMBER.findall(slide.body)) - {"0", "100"} <= on_page
    assert slide.figure is not None
    charts = [json.loads(chart.proto.spec)["data"] for chart in page.get("plotly_chart")]
    mine = [
        rounded_values(trace) for trace in slide.figure["data"] if trace.get("name") or "z" in trace
    ]
    assert mine and any(
        all(each in theirs for each in mine)
        for theirs in ([rounded_values(trace) for trace in chart] for chart in charts)
    )


def check_encoders(slide: Finding, page: AppTest) -> None:
    check_whole(slide, page)
    assert slide.table is not None
    frame = page.dataframe[-1].value
    rows = {(row["encoder"], row["attack"]): row for row in frame.to_dict("records")}
    for encoder, useful, leaks, by in slide.table.rows:
        row = rows[encoder, by]
        assert matches_rounded(useful, row["utility, macro-F1"], row["utility, 95 % CI"])
        assert matches_rounded(leaks, row["leakage, F1"], row["leakage, 95 % CI"])


def check_authors(slide: Finding, page: AppTest) -> None:
    """The table says what is at the end of each line of the figure, which is the page's."""
    check_whole(slide, page)
    assert slide.table is not None and slide.figure is not None
    assert list(slide.table.rows) in tables_of(page)
    lines = {trace["name"]: trace for trace in slide.figure["data"] if "error_y" in trace}
    for attack, reads, at_once, _ in slide.table.rows:
        line = lines[
            attack
            if reads in ("the raw text", "none")
            else f"{attack}, {encoder_title(ENCODER.name)}"
        ]
        end, above = (100 * part[-1] for part in (line["y"], line["error_y"]["array"]))
        below = 100 * line["error_y"]["arrayminus"][-1]
        assert matches_rounded(at_once, end, f"{max(end - below, 0)} {end + above}"), attack


def check_canaries(slide: Finding, page: AppTest) -> None:
    check_whole(slide, page)
    assert slide.table is not None
    bits = page.dataframe[0].value["Exposure, bits"]
    assert [row[-1] for row in slide.table.rows] == list(bits)


def check_defences(slide: Finding, page: AppTest) -> None:
    check_whole(slide, page)
    pinned = pin_page(page, "tradeoff")
    assert slide.table is not None and pinned.table == slide.table


BESIDE = {"shipped", "news", "sentences", "unnamed", "names", "pages", "remedies"}
"""Views of what a page shows beside its own finding: of them, its pin tells another n."""


def check_n(view: str, slide: Finding, page: AppTest) -> None:
    """What a slide says of n is what its page pins, or stands on the page."""
    n = dict(slide.facts)["n"]
    if view in BESIDE:
        assert set(NUMBER.findall(n)) <= set(NUMBER.findall(text_of(page)))
    else:
        own = dict(pin_page(page, VIEWS[view].page).facts)["n"]
        if view == "etas":  # of the setting that it recommends, which may have more seeds
            assert n.partition(";")[2] == own.partition(";")[2] and "sentences, " in n
        else:
            assert n in (own, own.partition(";")[0])


def check_shipped(slide: Finding, page: AppTest) -> None:
    assert slide.figure is not None and slide.table is not None
    assert trace_data(slide.figure) == trace_data(figure_of(page, "shipped-figure"))
    assert list(slide.table.rows) in tables_of(page)
    assert slide.body.replace("*", "") in text_of(page)
    compared = leak_figures()["overview"]
    best = re.search(r"recovers \*\*(about \d+ of 10 words)\*\* (\(F1 [^)]*\))", slide.body)
    assert best and compared.leak.startswith(f"{best[1]} {best[2]}")
    assert best[1] in slide.title
    (n,) = {row[2] for row in slide.table.rows}
    assert f"{n} held-out sentences" in compared.texts
    charts = [c.proto for c in page.get("plotly_chart")]
    assert slide.alt == next(c.alt for c in charts if c.id.endswith("-shipped-figure"))
    assert all(f"{name} {f1.partition(' ')[0]}" in slide.alt for name, f1, *_ in slide.table.rows)


def check_news(slide: Finding, page: AppTest) -> None:
    assert slide.table is not None and slide.figure is not None
    assert list(slide.table.rows) in tables_of(page)
    best = re.search(r"recovers \*\*(about \d+ of 10 words)\*\* (\(F1 [^)]*\))", slide.body)
    compared = leak_figures()["inversion"]
    assert best and compared.leak.startswith(f"{best[1]} {best[2]}")
    assert f"{dict(slide.facts)['n']} of BBC News" in compared.texts
    assert dict(slide.facts)["Cost"] in compared.attacker
    bars = [trace for trace in slide.figure["data"] if trace.get("type") == "bar"]
    values = sorted(round(value) for trace in bars for value in trace["x"])
    assert values == sorted(int(numbers(f1)[0]) for _, f1, *_ in slide.table.rows)
    assert slide.body.replace("*", "") in text_of(page)


def check_sentences(slide: Finding, page: AppTest) -> None:
    """The page tells the slide; its lines end where the table is, which is the tables' own."""
    check_unnamed(slide, page)
    assert slide.figure is not None and slide.table is not None
    assert trace_data(slide.figure) == trace_data(figure_of(page, "many-sentences-figure"))
    ends = [trace["y"][-1] for trace in slide.figure["data"]]
    own = [row for row in slide.table.rows if row[0].startswith("Wikipedia")]
    assert [round(end) for end in ends] == [round(numbers(row[3])[0]) for row in own]
    exact = [numbers(row[5]) for row in own]
    assert (
        slide.title
        == f"The attacker recovered {exact[0][0]:.0f} % of short Wikipedia sentences word for word"
    )
    for _, _, _, reads, guess, match in slide.table.rows:
        assert all(
            low <= value <= high and high > 0
            for value, low, high in map(numbers, (reads, guess, match))
        )


def check_unnamed(slide: Finding, page: AppTest) -> None:
    assert slide.table is not None
    assert list(slide.table.rows) in tables_of(page)
    assert slide.body.replace("*", "") in text_of(page)


def check_pages(slide: Finding, page: AppTest) -> None:
    assert slide.table is not None
    page.session_state["why-pages-differ"] = True
    page.run()
    said = next(m.value for m in page.markdown if "One encoder, several figures" in m.value)
    own = [line.removeprefix("- ") for line in said.splitlines() if line.startswith("- **")]
    assert len(own) == len(slide.table.rows)
    for line, (title, read, n, texts, attacker) in zip(own, slide.table.rows, strict=True):
        assert line.startswith(f"**{title}, {read}**: ") and f"; by the {attacker}: " in line
        assert texts in line and (n in texts or "for each of" in texts)
    counted = [numbers(row[1])[0] for row in slide.table.rows if "of 10 words" in row[1]]
    least, most = min(counted), max(counted)
    assert slide.title.endswith(f"from about {least:.0f} to about {most:.0f} of 10 words")


def check_mechanism(slide: Finding, page: AppTest) -> None:
    assert slide.table is not None and slide.figure is not None
    rows = tradeoff_rows_of(page)
    name = max((one for one, _ in rows if slide.title.startswith(one)), key=len)
    *etas, none = slide.table.rows
    for eta, _, useful, read, back, _ in etas:
        row = rows[name, f"η {eta}"]
        assert matches_rounded(useful, row["useful"], row["useful, 95 %"])
        assert matches_rounded(read, row["leaks"], row["leaks, 95 %"])
        assert back == "–" or abs(numbers(back)[0] - row["tokens back"]) <= ROUNDED
    base = rows["No defence", ""]
    assert matches_rounded(none[2], base["useful"], base["useful, 95 %"])
    assert matches_rounded(none[3], base["leaks"], base["leaks, 95 %"])
    assert len(etas) == sum(defence == name for defence, _ in rows)
    side = next(part.value for part in page.html if "Mean utility kept" in part.value)
    point = dict(slide.live)["point"].rpartition("=")[2]
    kept, back = next((row[1], row[4]) for row in etas if row[0] == point)
    assert f"<dd>{kept} of the advantage over guessing" in side
    assert back == "–" or f"<dd>{back} %</dd>" in side
    mine = next(trace for trace in slide.figure["data"] if trace.get("name") == name)
    theirs = page.get("plotly_chart")[0].proto.spec
    assert any(
        (trace["x"], trace["y"]) == (mine["x"], mine["y"]) for trace in json.loads(theirs)["data"]
    )


def corrected_leaks(title: str, task: str) -> dict[float, Score]:
    """Return what is recovered at each η, with intervals corrected for the number of η."""
    found = shipped_tradeoff()
    defence = next(p.defence for p in found.points if entry_shown(p.defence).title == title)
    kept = {e: p for e, p in measured_etas(found, defence).items() if task in p.utility}
    return dict(zip(kept, simultaneous_leaks(list(kept.values())), strict=True))


def check_etas(slide: Finding, page: AppTest) -> None:
    assert slide.table is not None
    rows = tradeoff_rows_of(page)
    base = rows["No defence", ""]
    for name, less, useful, by_rule, _ in slide.table.rows:
        own = {float(s.removeprefix("η ")): row for (d, s), row in rows.items() if d == name}
        least = min(numbers(base["leaks, 95 %"]))
        private = [eta for eta, r in own.items() if max(numbers(r["leaks, 95 %"])) < least]
        assert less == (f"up to η {max(private):g}" if private else "at no measured η")
        assert useful == "at no measured η" or float(useful.rpartition(" ")[2]) in own
        if by_rule == "none":
            continue
        row = own[float(by_rule)]
        lead = rf"\*\*{name}, η {by_rule}\*\*: "
        score = r"\*\*(\S+)\*\* \(95 % CI (\S+)–(\S+)\)"
        said = re.search(rf"{lead}.*?F1 of {score} instead .*? is {score}", slide.body)
        leak = corrected_leaks(name, dict(slide.live)["task"])[float(by_rule)]
        ends = f"{leak.ci95.low} {leak.ci95.high}"
        assert abs(leak.value - row["leaks"]) <= ROUNDED
        assert said and matches_rounded(" ".join(said.groups()[:3]), leak.value, ends)
        assert matches_rounded(" ".join(said.groups()[3:]), row["useful"], row["useful, 95 %"])


def check_attackers(slide: Finding, page: AppTest) -> None:
    assert slide.table is not None
    page.toggle(key="each_attacker").set_value(True).run()
    rows = tradeoff_rows_of(page)
    assert numbers(slide.body)[0] == len(rows)
    base = rows["No defence", ""]
    by = {title.removeprefix("by: "): said for title, said in base.items() if title[:4] == "by: "}
    late = {format_attacker(name) for name in FRESH}  # they come to trained ones alone
    assert [name for name in by if name not in late] == [name for name, *_ in slide.table.rows]
    assert all(name in slide.body for name in by if name in late)
    for name, _, reads, _ in slide.table.rows:
        if reads == "–":
            assert by[name] == ""
        else:
            value, *interval = numbers(by[name])
            assert matches_rounded(reads, value, " ".join(map(str, interval)))
    shown = text_of(page)
    n_learnt = dict(slide.facts)["Cost"].split()[4]
    assert f"train on the defended vectors of their {n_learnt}" in shown
    assert f"The targets are {numbers(dict(slide.facts)['Data'])[0]:.0f} other sentences" in shown


def check_remedies(slide: Finding, page: AppTest) -> None:
    assert slide.table is not None
    shown = text_of(page)
    for title, what, stops, leaves in slide.table.rows:
        assert title in [part.value for part in page.header]
        assert f"{what}\n\nStops {stops}.\n\nDoes not stop {leaves}." in shown


def check_words(slide: Finding, page: AppTest) -> None:
    assert slide.table is not None
    html = next(part.value for part in page.html if "ls-glossary" in part.value)
    shown = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", unescape(html))
    assert shown == list(slide.table.rows)
    assert page.title[0].value == slide.title and slide.body in text_of(page)
    page.button(key="add-to-story-glossary").click().run()
    (placed,) = page.session_state["_story_pins"]
    assert placed.pin.page == "glossary" and placed.pin.slide.table == slide.table
    assert (placed.pin.slide.title, placed.pin.slide.body) == (slide.title, slide.body)


CHECKS: dict[str, Callable[[Finding, AppTest], None]] = {
    "shipped": check_shipped,
    "news": check_news,
    "sentences": check_sentences,
    "unnamed": check_unnamed,
    "names": check_whole,
    "encoders": check_encoders,
    "authors": check_authors,
    "members": check_whole,
    "canaries": check_canaries,
    "pages": check_pages,
    "defences": check_defences,
    "mechanism": check_mechanism,
    "etas": check_etas,
    "attackers": check_attackers,
    "remedies": check_remedies,
    "words": check_words,
}
"""By view; `example` has its reading worked out anew in `test_story_example`."""

ASKED: list[tuple[str, dict[str, str]]] = [
    *((view, {}) for view in CHECKS if view not in ("mechanism", "etas", "defences")),
    ("defences", {"task": "TREC", "keep": "90"}),
    *(
        ("mechanism", {"defence": name, "task": "MR"})
        for name in ("text_to_text", "token_representation", "sequence_representation")
    ),
    ("etas", {"task": "TREC", "keep": "80"}),
    ("etas", {"task": "MR", "keep": "60"}),
]


@pytest.mark.slow
def test_every_view_is_held_against_its_page() -> None:
    assert {*CHECKS, "example"} == set(VIEWS) and {view for view, _ in ASKED} == set(CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize(("view", "asked"), ASKED)
def test_a_slide_says_what_its_page_shows(
    shipped_app: AppTest, view: str, asked: dict[str, str]
) -> None:
    slide = build_view(view, asked)
    page = open_live(shipped_app, view, slide, asked)
    CHECKS[view](slide, page)
    check_n(view, slide, page)


@pytest.mark.slow
def test_members_has_the_strongest_attack_on_each_model_and_its_data(shipped_app: AppTest) -> None:
    slide = build_view("members", {})
    page = open_live(shipped_app, "members", slide, {})
    assert slide.table is not None and strip_markdown(page.title[0].value) == slide.title
    said = []
    by = {(one.model, one.data, one.attack): one for one in cache.membership()}
    for model in dict.fromkeys(one.model for one in cache.membership()):
        page.session_state[membership.MODEL_KEY] = model
        page.run()
        for i in range(len(page.selectbox(key=membership.DATA_KEY).options)):
            page.selectbox(key=membership.DATA_KEY).select_index(i).run()
            page.selectbox(key=membership.ATTACK_KEY).select_index(0).run()  # the strongest
            if page.title[0].value.startswith("A control"):
                continue
            chosen = (
                page.session_state[key]
                for key in (membership.MODEL_KEY, membership.DATA_KEY, membership.ATTACK_KEY)
            )
            one = by[tuple(chosen)]
            assert f"has an AUC of {format_auc(one.auc)}" in text_of(page)
            assert f"Attacker: {one.attack_title}" in text_of(page)
            said.append((one.model_title, one.attack_title, one.auc.in_percent().format()))
    said.sort(key=lambda one: -numbers(one[2])[0])
    shown = [
        (model, attack.rpartition(", on ")[0], auc) for model, _, attack, auc in slide.table.rows
    ]
    weaker = said[len(shown) :]
    assert sorted(shown) == sorted(said[: len(shown)]) and weaker
    beside = dict(slide.facts)[WEAKER]
    least = numbers(weaker[-1][2])[0]
    assert beside.startswith(f"{len(weaker)} more, down to an AUC of {least:.1f} (")
