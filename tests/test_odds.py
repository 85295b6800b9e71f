"""What an η promises stands beside it, in slides, tables and notes, from distances kept."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.assets import ASSETS, ROOT
from core.defences.metric_dp.choice_promise import promises_of
from core.defences.metric_dp.kept_distances import (
    SHIPPED,
    kept_promises,
    load_distances,
    measure_kept,
)
from core.defences.metric_dp.promise import Promise, Promises, odds_said
from core.defences.registry import DEFENCES
from core.encoders.transformer import TransformerEncoder
from core.errors import ArtifactError
from core.specs import DefenceSpec
from core.story.views import told
from core.studies.deniability_tables import markdown as deniability_markdown
from core.studies.odds import COMPOSED, ODDS, kept_odds, odds_note, odds_of
from core.studies.privacy_tables import constrained_markdown
from core.studies.reconstruct import markdown as reconstruct_markdown
from core.studies.tables import read_rows
from core.studies.tradeoff_files import load_rows
from core.studies.tradeoff_summary import markdown as tradeoff_markdown

RESULTS = ROOT / "docs" / "results"

SETTINGS = (
    DefenceSpec.of("text_to_text", {"eta": 75.0}),
    DefenceSpec.of("sequence_representation", {"eta": 200.0}),
    DefenceSpec.of("santext_plus", {"epsilon": 20.0}),
    DefenceSpec.of("custext", {"epsilon": 4.0}),
    DefenceSpec.of("tem", {"epsilon": 20.0}),
)


def _promises(*log_odds: float) -> Promises:
    near, median, whole = (Promise("x from y", 1.0, each) for each in log_odds)
    return Promises(near, median, whole, whole, n_tokens=7)


def test_the_odds_are_said_in_brief() -> None:
    found = _promises(math.log(3), math.log(40), math.log(10) * 30)
    assert found.odds_in_turn == "3 · 40 · 10^30 to 1"
    assert found.brief == (
        "odds of up to 3 to 1 between nearest neighbours, 40 to 1 between a median pair, "
        "10^30 to 1 for a whole sentence of 7 tokens: a promise of some worth"
    )
    assert found.others == (
        "Between a median pair the odds are up to 40 to 1, for a whole sentence of 7 tokens up to "
        "10^30 to 1."
    )
    assert _promises(1.0, math.inf, 2.0).odds_in_turn == "2.8 to 1 · any size · 7.4 to 1"


def test_what_is_kept_is_what_the_encoder_measures(minilm: TransformerEncoder) -> None:
    kept, fresh = load_distances(SHIPPED), measure_kept(minilm)
    assert kept.fingerprint == minilm.fingerprint and kept.encoder == minilm.name == "minilm"
    assert kept.tokens.tokens == fresh.tokens.tokens
    assert kept.tokens.nearest == fresh.tokens.nearest
    for name in ("to_nearest", "to_median", "to_farthest"):
        assert np.allclose(getattr(kept.tokens, name), getattr(fresh.tokens, name), rtol=1e-4)
    assert kept.tokens.median_pair == pytest.approx(fresh.tokens.median_pair, rel=1e-4)
    assert kept.tokens.n_candidates == fresh.tokens.n_candidates
    assert kept.texts.median_pair == pytest.approx(fresh.texts.median_pair, rel=1e-3)


@pytest.mark.parametrize("spec", SETTINGS, ids=lambda spec: spec.name)
def test_a_kept_promise_is_the_measured_one(spec: DefenceSpec, minilm: TransformerEncoder) -> None:
    kept, fresh = kept_promises(spec, "minilm"), promises_of(minilm, spec)
    assert kept is not None and kept.symbol == fresh.symbol and kept.pairs == fresh.pairs
    for one, other in ((kept.nearest, fresh.nearest), (kept.median, fresh.median)):
        assert one.epsilon == pytest.approx(other.epsilon, rel=1e-3)
    assert (kept.whole is None) == (fresh.whole is None)


def test_no_promise_is_told_that_nothing_is_known_of() -> None:
    eta = {"eta": 75.0}
    assert kept_promises(DefenceSpec.of("gaussian", {"sigma": 0.1}), "minilm") is None
    assert kept_promises(DefenceSpec.of("text_to_text", eta), "another") is None
    whole = DefenceSpec.of("text_to_text", {**eta, "candidates": "whole"})
    assert kept_promises(whole, "minilm") is None
    nothing = DefenceSpec.of("custext", {"epsilon": 4.0, "mapping": "aggressive"})
    assert kept_promises(nothing, "minilm") is None
    assert odds_of(DefenceSpec.of("text_to_text", {"of a later version": 1}), "minilm") is None
    assert odds_note([DefenceSpec.of("int8", {})], "minilm") == ""


def test_a_chain_and_a_network_promise_what_stands_first() -> None:
    alone = kept_odds(DefenceSpec.of("text_to_text", {"eta": 60.0}), "minilm")
    assert re.fullmatch(r"10\^\d+ · 10\^\d+ · 10\^\d+ to 1", alone)
    chain = DefenceSpec.of("text_to_text+int8", {"text_to_text.eta": 60.0})
    network = DefenceSpec.of("constrained", {"sends": "text_to_text", "eta": 60.0})
    assert kept_odds(chain, "minilm") == kept_odds(network, "minilm") == alone


def test_a_sentence_is_promised_what_its_farthest_tokens_are() -> None:
    spec = DefenceSpec.of("text_to_text", {"eta": 75.0})
    assert kept_odds(spec, "minilm").endswith(" · 10^675 to 1")
    found = odds_of(spec, "minilm")
    assert found is not None and found.whole is not None
    farthest = load_distances(SHIPPED).tokens.to_farthest
    assert found.whole.epsilon == pytest.approx(75 * farthest.sum())


def test_a_damaged_file_of_distances_is_refused(tmp_path: Path) -> None:
    whole = json.loads(SHIPPED.read_text("utf-8"))
    path = tmp_path / "distances.json"
    for damage in (
        {"tokens": {**whole["tokens"], "to_nearest": []}},
        {"tokens": {**whole["tokens"], "median_pair": -1.0}},
        {"texts": {}},
    ):
        path.write_text(json.dumps(whole | damage))
        with pytest.raises(ArtifactError, match="distances"):
            load_distances(path)


def test_a_slide_of_a_mechanism_tells_the_odds_of_each_eta() -> None:
    slide = told("mechanism", {"defence": "text_to_text"})
    assert slide.table is not None
    place = slide.table.columns.index(ODDS)
    for eta, *cells in slide.table.rows:
        if eta == "no defence":
            continue
        spec = DefenceSpec.of("text_to_text", {"eta": float(eta)})
        assert cells[place - 1] == kept_odds(spec, "minilm") != ""
    assert "between nearest neighbours" in slide.body and "for a whole sentence of" in slide.body
    assert "ordinary differential privacy" in dict(slide.facts)["Odds"]


def test_slides_that_name_an_eta_tell_its_odds() -> None:
    etas = told("etas", {"task": "TREC", "keep": "90"})
    assert etas.table is not None
    named = [set(re.findall(r"η (\d\S*)", " ".join(row[1:-1]))) for row in etas.table.rows]
    assert named == [set(re.findall(r"η (\d[^:]*):", row[-1])) for row in etas.table.rows]
    assert any(named)
    assert "the strongest promise" in etas.body and "almost no promise" in etas.body
    best = told("defences", {"task": "SST-2", "keep": "90"})
    (eta,) = re.findall(r"Text to text, η (\d+)", best.body)
    spec = DefenceSpec.of("text_to_text", {"eta": float(eta)})
    found = odds_of(spec, "minilm")
    assert found is not None and found.of_nearest in best.body, "all of them stand in the table"
    assert best.table is not None
    row = next(row for row in best.table.rows if row[0] == f"Text to text, η {eta}")
    assert f"odds up to {kept_odds(spec, 'minilm')}" in row[4]


def test_the_note_says_from_which_odds_on_almost_nothing_is_promised() -> None:
    note = odds_note(SETTINGS[:2], "minilm")
    assert odds_said(10.0) in note and "a median pair of texts" in note
    assert "a median pair of texts" not in odds_note(SETTINGS[:1], "minilm")


def test_tables_of_networks_tell_the_odds_of_what_users_send() -> None:
    rows = read_rows(RESULTS / "constrained.json", "constrained")
    page = constrained_markdown(rows)
    head, *lines = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    place, times = head.index(ODDS.lower()), head.index("releases of a text")
    for line in (each for each in lines if each != head):  # there is a table for each task
        name = next((n for n, entry in DEFENCES.items() if entry.title == line[1]), "")
        eta = {"eta": float(line[2])} if line[2].strip() else {}
        releases = {"Sequence representation": 20}.get(line[1], 3) if eta else 0
        assert line[times].strip() == (str(releases) if eta else "")
        said = kept_odds(DefenceSpec.of(name, eta), "minilm", releases) if eta else ""
        assert line[place].strip() == said
        assert ("10^" in line[place]) == bool(eta)
    assert f"Odds: {odds_note(SETTINGS[:2], 'minilm').partition(' They cover')[0]}" in page
    assert COMPOSED in page and "They cover one release" not in page
    elsewhere = [replace(row, facts={**row.facts, "encoder": "another"}) for row in rows]
    assert "10^" not in constrained_markdown(elsewhere), "of another encoder nothing is known"


def test_tables_of_the_trade_off_and_of_deniability_tell_the_odds() -> None:
    rows = load_rows(ASSETS / "tradeoff" / "minilm.json")
    page = tradeoff_markdown(rows)
    line = next(line for line in page.splitlines() if line.startswith("| text_to_text | η 75 "))
    odds = kept_odds(DefenceSpec.of("text_to_text", {"eta": 75.0}), "minilm")
    assert line.endswith(f" {odds} |") and "Odds: by how much" in page
    told = deniability_markdown(read_rows(RESULTS / "deniability.json", "deniability"))
    assert f"| 75 | {odds} |" in told and "can be denied against these odds" in told
    read = reconstruct_markdown(read_rows(RESULTS / "reconstruct-defended.json", "reconstruct"))
    assert "at η 200 it promises odds of up to" in read
