"""What a slide claims stands on it with what bounds it: scale, n, and what is left out."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

import pytest

from core.attacks.membership.rates import PRIORS, predictive_value
from core.errors import InvalidInputError
from core.story import files
from core.story.deck import live_address, make_deck
from core.story.format import Slide
from core.story.html import html_report
from core.story.shipped import open_story, shipped_stories, with_use
from core.story.views import told
from core.story.views_read import held_out_records
from core.studies import more_texts, representation_summary
from core.studies.attribute_curves import View, load_shipped, mean_at, views_of
from core.studies.eta_outlook import measured_etas
from core.studies.leak_figures import leak_figures
from core.studies.membership_shipped import load_measured, strongest
from core.studies.tables import read_rows
from core.studies.tradeoff_choice import LEAKS_LEAST, NAMES_NOT_TESTED, choose, listed_said
from core.studies.tradeoff_files import shipped_tradeoff
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_texts import draw_texts
from core.studies.tradeoff_told import lost_said
from core.tasks.names import task_said

MECHANISMS = ("text_to_text", "token_representation", "sequence_representation")


def bars(slide: Slide) -> list[tuple[str, float, str]]:
    """Return each bar of a slide: whose it is, how long, and what stands beside it."""
    assert slide.figure is not None
    (bar,) = (trace for trace in slide.figure["data"] if trace["type"] == "bar")
    beside = {each["y"]: each["text"] for each in slide.figure["layout"]["annotations"]}
    return [(y, x, beside[y]) for y, x in zip(bar["y"], bar["x"], strict=True)]


@pytest.mark.parametrize("view", ["shipped", "news"])
def test_a_bar_is_as_long_as_its_label_says(view: str) -> None:
    slide = told(view, {})
    for name, length, label in bars(slide):
        assert re.match(rf"<b>F1 {length:.0f}</b>", label), name
    assert "F1 counts wrong guesses, too" in slide.body
    assert slide.figure is not None
    title = slide.figure["layout"]["xaxis"]["title"]["text"]
    assert title.startswith("F1") and len(title) <= 24, "it has room on a telephone"


def news_rows() -> list[Any]:
    path = representation_summary.SHIPPED / representation_summary.MORE_TEXTS
    rows = read_rows(path, more_texts.STUDY)
    return [row for row in rows if (row["encoder"], row["domain"]) == ("minilm", "cross")]


def test_bars_of_fewer_sentences_or_less_taught_attacks_say_so() -> None:
    slide, rows = told("news", {}), news_rows()
    others = dict(slide.facts)["Other bars"]
    labels = [label for _, _, label in bars(slide)]
    for row, label in zip(rows, labels, strict=True):
        n = row.scores["token_set_f1"].n
        assert label.endswith(f", n = {n:,}")
        if f"{n:,} sentences" != dict(slide.facts)["n"]:
            assert f"n = {n:,}" in others
        if f"taught by {row['n_fitted_on']:,}" not in dict(slide.facts)["Cost"]:
            assert f"taught by {row['n_fitted_on']:,}" in others
    assert "n = 50, taught by" in others, "the rows that ship have such bars"


@pytest.mark.parametrize(("view", "page"), [("shipped", "overview"), ("news", "inversion")])
def test_what_is_not_scored_stands_on_the_slide_with_the_f1_of_every_word(
    view: str, page: str
) -> None:
    slide, figure = told(view, {}), leak_figures()[page]
    assert figure.all_words is not None
    assert f"counted as missed, the F1 is **{figure.all_words:.0f}**" in slide.body
    assert "Stop words, and words outside an attack's vocabulary, are not scored" in slide.caveat


def test_an_attack_that_was_trained_once_says_so() -> None:
    seeds = {record["seed"] for record in held_out_records().values()}
    assert len(seeds) == 1
    fact = dict(told("shipped", {}).facts)["Trainings"]
    assert fact.startswith(f"one of each attack (seed {seeds.pop()})")


def test_an_accusation_is_weighed_where_members_are_few_and_attacks_were_many() -> None:
    body = told("members", {}).body
    found = [one for one in load_measured() if not one.is_control]
    best = strongest(found)
    alike = [one for one in found if (one.model, one.data) == (best.model, best.data)]
    at = best.at[0]
    share = predictive_value(at.tpr.value, at.fpr, PRIORS[1])
    assert f"strongest of {len(alike)} attacks that were tried" in body and len(alike) > 1
    assert "Where one in 11 is a member, and 10 % of the others" in body
    assert f"**{100 * share:.0f} %** (95 % interval" in body
    assert "of those accused are members" in body


def test_what_was_trained_on_is_called_as_its_page_calls_it() -> None:
    slide, found = told("members", {}), load_measured()
    assert slide.table is not None
    assert {row[1] for row in slide.table.rows} <= {one.data_title for one in found}
    assert dict(slide.facts)["Data"] == strongest(found).data_title
    assert not [one.data_title for one in found if "1 epochs" in one.data_title]


def test_a_slide_of_authors_says_what_the_raw_text_gives_away_and_what_is_the_work() -> None:
    slide = told("authors", {})
    assert slide.table is not None
    cells = {attack: (reads, at_once) for attack, reads, at_once, _ in slide.table.rows}
    raw = {attack: said for attack, (reads, said) in cells.items() if reads == "the raw text"}
    attack, said = max(raw.items(), key=lambda each: int(each[1].split()[0]))
    assert f"it is {said} ({attack.lower()}): more than from the vector" in slide.body
    rows = load_shipped()
    labels, sizes = views_of(rows, "group")
    view = View("group", labels[-1], sizes[-1])
    share = mean_at(rows, view, "linear", "topic_share_top1", "minilm")
    assert share is not None
    assert f"the linear probe, {share.in_percent().said(0)} %" in slide.body


@pytest.mark.parametrize("view", ["authors", "members"])
def test_an_appendix_that_cannot_be_stepped_to_is_the_reports(view: str) -> None:
    slide = told(view, {})
    said = " ".join((slide.body, *(part for fact in slide.facts for part in fact)))
    assert "appendix" not in said.replace("the report's appendix", "").replace(
        "The report's appendix", ""
    )


def test_where_no_defence_helps_the_headline_names_none_and_gives_both_figures() -> None:
    found = shipped_tradeoff("minilm")
    choices = {task: choose(found, task, 0.9) for task in found.tasks}
    task, choice = next((t, c) for t, c in choices.items() if c.best is not None and not c.helps)
    assert choice.best is not None
    slide = told("defences", {"task": task, "keep": "90"})
    own, none = (choice.leak(point).value for point in (choice.best, choice.base))
    assert slide.title.startswith(
        f"For {task_said(task)}: no defence that is shown to lose at most "
        f"{lost_said(choice.base, task, 0.9)} "
        "leaks significantly less"
    )
    assert f"F1 {own:.0f} at the least, F1 {none:.0f} without" in slide.title
    assert not any(least in slide.title for least in ("leaks least", *LEAKS_LEAST.values()))
    assert "best setting" not in slide.body
    assert marks(slide) == []


def test_a_mark_and_a_line_of_a_figure_are_explained_on_its_slide() -> None:
    slide = told("defences", {"task": "TREC", "keep": "80"})
    assert marks(slide) == ["<b>A</b>"] and "(A in the figure)" in slide.body
    assert slide.figure is not None and "reached by some setting" not in str(slide.figure["layout"])


def test_the_headline_of_a_defence_names_what_it_leaks_and_what_a_list_finds() -> None:
    assert set(LEAKS_LEAST) == set(READS)
    slide = told("defences", {"task": "TREC", "keep": "80"})
    assert slide.title.endswith("leaks the fewest words of settings that lose at most 11.5 points")
    found = shipped_tradeoff("minilm")
    best = choose(found, "TREC", 0.8).best
    assert best is not None and listed_said("minilm", best, is_brief=True) in slide.body


def test_what_a_list_finds_is_told_where_it_was_measured_and_else_that_it_was_not() -> None:
    points = shipped_tradeoff("minilm").points
    told = {point.defence: listed_said("minilm", point) for point in points}
    assert "of names" in told["truncation"] and "guessing: 2.5 %" in told["truncation"]
    assert told["text_to_text"] == NAMES_NOT_TESTED
    assert {listed_said("elsewhere", point) for point in points} == {NAMES_NOT_TESTED}


def marks(slide: Slide) -> list[str]:
    assert slide.figure is not None
    texts = [text for trace in slide.figure["data"] for text in trace.get("text") or ()]
    return [text for text in texts if text.startswith("<b>")]


def test_more_read_than_without_a_defence_is_explained() -> None:
    found = shipped_tradeoff("minilm")
    for name in MECHANISMS:
        body = told("mechanism", {"defence": name}).body
        more = [
            eta
            for eta, point in measured_etas(found, name).items()
            if point.leakage.ci95.low > found.undefended.leakage.ci95.high
        ]
        said = re.search(r"From η (\S+) on that is \*\*more than without", body)
        assert (said and float(said[1])) == (min(more) if more else None), name
        is_of_vectors = name == "token_representation"
        what = "noisy vectors of the tokens" if is_of_vectors else "the tokens themselves"
        assert re.findall(r"stored, here (.*?) are released", body) == [what] * bool(more)


def test_mechanisms_have_one_scale_of_usefulness_which_holds_every_interval() -> None:
    found = shipped_tradeoff("minilm")
    figures = [told("mechanism", {"defence": name}).figure for name in MECHANISMS]
    ((low, high),) = {tuple(figure["layout"]["xaxis"]["range"]) for figure in figures if figure}
    points = [p for name in MECHANISMS for p in measured_etas(found, name).values()]
    for score in (p.utility["TREC"] for p in (*points, found.undefended)):
        assert low < score.ci95.low and score.ci95.high < high
    assert low < found.undefended.utility["TREC"].chance - 4, "its label keeps off the axis"


def test_what_stays_useful_is_said_of_a_task() -> None:
    found, said = shipped_tradeoff("minilm"), task_said("TREC")
    assert f"for {said}" in told("etas", {"keep": "80", "task": "TREC"}).title
    for name in MECHANISMS:
        slide = told("mechanism", {"defence": name, "task": "TREC"})
        useful = [p.utility["TREC"].value for p in measured_etas(found, name).values()]
        least, most = f"{useful[0]:.0f}", f"{useful[-1]:.0f}"
        assert f"Usefulness for {said} is {least} to {most} at these η" in slide.body


def test_seeds_and_dashes_of_the_attackers_are_explained() -> None:
    slide = told("attackers", {})
    assert slide.table is not None and "–" in {row[2] for row in slide.table.rows}
    assert "–: who reads what a mechanism releases" in slide.body
    assert "others for each of" in dict(slide.facts)["n"]
    texts = [" ".join(f"w{i}x{j}" for j in range(6)) for i in range(300)]
    first, second = (draw_texts(texts, 50, 30, seed).targets for seed in (0, 1))
    assert set(first) != set(second), "so it is"


@pytest.mark.parametrize("name", list(shipped_stories()))
def test_per_cent_is_written_one_way(name: str) -> None:
    for page in make_deck(shipped_stories()[name], "2026-01-01").pages:
        rows = page.table.rows if page.table else ()
        cells = [cell for row in (page.table.columns if page.table else (), *rows) for cell in row]
        parts = [page.heading, page.finding, *(b.text for b in page.body), *cells]
        unfit = re.compile(r"\d%|\b1 (passes|epochs|decimals)")
        assert [part for part in parts if unfit.search(part)] == []


def test_a_slide_says_what_repeats_it_and_where_it_is_live_in_words() -> None:
    deck = make_deck(shipped_stories()["how-measured"], "2026-01-01")
    slides = html_report(deck).partition('<section class="appendix"')[0]
    for page in deck.pages:
        assert f"<code>{escape(page.commands[0])}</code>" in slides, page.heading
    board = make_deck(shipped_stories()["safe-to-store"], "2026-01-01")
    (example, *_) = board.pages
    assert "%2C" in example.live and "%" not in example.place
    assert re.match(r"Inversion \(text “Martin, the board .*…”, attack search\)$", example.place)
    shown = html_report(board).partition('<section class="appendix"')[0]
    assert example.place in shown and "%2C" not in shown


@pytest.mark.parametrize("suffix", [".html", ".pdf"])
def test_the_command_says_whether_the_notes_are_in_the_file(
    suffix: str, core: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "report_bytes", lambda *_: b"%PDF-")
    said = core("report", "safe-to-store", "--out", str(tmp_path / f"report{suffix}")).out
    n = len(shipped_stories()["safe-to-store"].pins)
    assert f"{n} slides and a title" in said
    assert ("with the speaker's notes" in said) == (suffix != ".pdf")


def test_the_boards_story_is_about_what_the_vectors_are_for() -> None:
    board = open_story("safe-to-store")
    (place,) = [i for i, pin in enumerate(board.pins) if pin.shows == "defences"]
    assert dict(board.pins[place].parameters)["use"] == "search", "as the page opens"
    found = shipped_tradeoff("minilm")
    for use in found.uses:
        pin = with_use(board, use).pins[place]
        slide = told(pin.shows, dict(pin.parameters))
        task = found.opening_task(use)
        choice = choose(found, task, 0.9)
        assert task_said(task).removeprefix("search: ") in slide.title
        assert f"?use={use}&keep=90" in live_address(pin, slide.live)
        if choice.n_compared > 1:
            assert f"choosing among {choice.n_compared} settings" in dict(slide.facts)["Interval"]
        assert slide.table is not None and choice.best is not None
        assert any(choice.leak(choice.best).said(0) in row for row in slide.table.rows)
    others = [pin for i, pin in enumerate(board.pins) if i != place]
    assert [p for i, p in enumerate(with_use(board, "similarity").pins) if i != place] == others
    with pytest.raises(InvalidInputError, match="use must be one of search"):
        told("defences", {"use": "nonsense"})
