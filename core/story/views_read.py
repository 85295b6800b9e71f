"""Views of what is read from vectors, told from the rows that ship."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.attacks.inversion import shipped as stored
from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.errors import ArtifactError
from core.figures.inversion import shipped_scores
from core.figures.names import name_map
from core.figures.representations import encoder_title, representations_figure
from core.results import Score
from core.said import guess_said, leak_said, of_ten, read_said
from core.store import META, read_record
from core.story.commands import command_of
from core.story.drawing import plain_figure
from core.story.format import PAGES, Fact, Slide, Table
from core.story.versions import versions_told
from core.story.views import chosen
from core.studies import names_tables, representation_summary
from core.studies.classification import VIEWS as TEXT_VIEWS
from core.studies.domains import DOMAINS
from core.studies.leak_figures import LeakFigure, leak_figures
from core.studies.names_tables import counted_said, matrix_of
from core.studies.provenance import Provenance, measured_said
from core.studies.representation_order import Finding, least_leaking
from core.studies.representation_summary import Point
from core.studies.rows import Row

__all__ = ["encoders", "every_word_said", "held_out_records", "listed", "names", "pages", "shipped"]

ENCODER = "minilm"
INTERVAL = "95 %, in brackets"
F1_TOLD = "F1 counts wrong guesses, too: 0 is no word read, 100 every word and no other"


def shipped() -> Slide:
    """Return what each attack that ships reads of sentences that were kept from it."""
    records = held_out_records()
    scores = {
        name: Score.of_record(record["held_out"], "token_set_f1", chance="prior_f1")
        for name, record in records.items()
    }
    best = max(scores, key=lambda name: scores[name].value)
    top, guess = scores[best], scores[best].chance
    rows = [
        (INVERSION_ATTACKS[name].title, score.said(0), f"{score.n:,}", needs(name))
        for name, score in scores.items()
    ]
    recalls = {name: record["held_out"].get("recall") for name, record in records.items()}
    recall = recalls[best]
    every = records[best]["held_out"].get("unrestricted_f1")
    return Slide(
        title=f"From vectors alone, an attacker reads {read_said(top, recall)}",
        body=f"Averaged over {top.n:,} sentences that no attack was trained on, nor on any that "
        f"nearly repeats them, the {INVERSION_ATTACKS[best].title.lower()} reads "
        f"{leak_said(top, recall, is_bold=True)}. An attacker who never sees the vector comes "
        f"to {guess_said(guess)}. {F1_TOLD}.{every_word_said(every)}",
        figure=plain_figure(shipped_scores(scores)),
        alt=f"F1 by attack: {listed(scores)}; guessing alone {guess:.0f}",
        table=Table(columns=("Attack", "F1", "n", "Needs"), rows=tuple(rows)),
        facts=(
            ("Data", f"{top.n:,} sentences kept from the attacks, of the kinds they learnt from"),
            ("n", f"{top.n:,} sentences"),
            ("Interval", INTERVAL),
            *attacker_facts(best, int(records[best]["n_texts"]), records[best]),
            *_seeds_fact(records.values()),
            *versions_of([records[best].get("versions", {})]),
        ),
        commands=("python -m core.attacks.inversion.rescore --texts DATA/sentences.parquet",),
    )


def _seeds_fact(records: Iterable[Mapping[str, Any]]) -> tuple[Fact, ...]:
    """Return on how many trainings each attack rests, where its record says under which seed."""
    seeds = {record["seed"] for record in records if "seed" in record}
    if not seeds:
        return ()
    told = f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, sorted(seeds)))}"
    doubt = "the interval is of the sentences, not of trainings"
    return (("Trainings", f"one of each attack ({told}): {doubt}"),)


def every_word_said(f1: float | None) -> str:
    """Return the F1 of every word, those that no attack can name included, where it was kept."""
    if f1 is None:
        return ""
    return f" Words that the attack cannot name counted as missed, the F1 is **{f1:.0f}**."


def held_out_records() -> dict[str, Any]:
    """Return the records of attacks that ship whose score on held-out sentences is recorded.

    Raises
    ------
    ArtifactError
        There is none.
    """
    found = {
        name: dict(read_record(stored.WEIGHTS / ENCODER / name / META, training=dict)["training"])
        for name in INVERSION_ATTACKS
        if (stored.WEIGHTS / ENCODER / name / META).exists()
    }
    scored = {name: record for name, record in found.items() if record.get("held_out")}
    if not scored:
        raise ArtifactError("No attack ships whose score on held-out sentences is recorded.")
    return scored


def needs(attack: str) -> str:
    """Return what an attack of words needs beside the vector."""
    return INVERSION_ATTACKS[attack].access.needs


def attacker_facts(
    attack: str, n_texts: int, record: dict[str, Any] | None = None
) -> tuple[Fact, ...]:
    """Return who attacks, with what access and at what cost."""
    taught = f"taught by {n_texts:,} sentences"
    if record and "seconds" in record:
        taught += f" in {float(record['seconds']) / 60:.0f} minutes"
    return (
        ("Attacker", INVERSION_ATTACKS[attack].title),
        ("Access", needs(attack)),
        ("Cost", taught),
    )


def listed(scores: dict[str, Score]) -> str:
    """Return F1 by attack, as the alternative to a figure."""
    return ", ".join(f"{INVERSION_ATTACKS[n].title} {s.value:.0f}" for n, s in scores.items())


def names() -> Slide:
    """Return how often the surnames of people in the news are read."""
    rows = names_tables.load_rows()
    row = next(
        (r for r in rows if r["kind"] == "substitution" and r["domain"] == "in"
         and not r["n_added"]), None
    )  # fmt: skip
    probe = next((r for r in rows if r["kind"] == "probing" and r["knows"] == "alone"), None)
    if row is None or probe is None:
        raise ArtifactError(f"{names_tables.SHIPPED} holds no row of names in news.")
    own, found = row.scores["diagonal"], probe.scores["hits_1"]
    return Slide(
        title=f"The surname is read from {own.value:.0f} % of sentences about known people",
        body="An attack that was trained on other documents of the same news reads the surname "
        f"from {counted_said(own, 'sentences')} about the {row['n_names']} people named most "
        "often. The encoder alone, without any training, picks the right one of "
        f"{probe['n_candidates']} names in {counted_said(found, 'vectors')}.\n\nIn the figure, a "
        "row is whose sentences they are, a column the name put into them (below it: how many "
        "training sentences hold it), a cell the per cent in which that name was read.",
        figure=plain_figure(_matrix(row)),
        alt=f"How often each of {row['n_names']} surnames was read in news, a row for whose "
        "sentences they are and a column for the name put in; nobody is named",
        facts=(
            ("Data", "BBC News, sentences about people"),
            ("n", f"{own.n:,} sentences of {row['n_names']} people; {found.n:,} vectors"),
            ("Interval", "95 %, in brackets"),
            *attacker_facts(row["attack"], int(row["n_fitted_on"])),
            *origin(r.provenance for r in rows),
        ),
        commands=(command_of("names"),),
    )


def _matrix(row: Row) -> Any:
    notes = [f"{n:,}" for n in row["training"]]
    return name_map(row["people"], row["people"], matrix_of(row), notes=notes)


def encoders(domain: str = "cross", view: str = "sentences") -> Slide:
    """Return which encoder leaks least of those that are as useful as the best."""
    chosen("domain", domain, tuple(DOMAINS))
    chosen("view", view, tuple(TEXT_VIEWS))
    found = representation_summary.load_representations()
    points = found.points(found.encoders, found.attacks, domain, view)
    best = least_leaking(points)
    if best is None or best.best.useful is None:
        raise ArtifactError("The rows of encoders hold no usefulness: they cannot be compared.")
    leak, useful = best.best.leak, best.best.useful
    name = encoder_title(leak.encoder)
    return Slide(
        title=_verdict(best),
        body=f"Of {best.n_compared} encoders compared, {len(best.as_useful)} are as useful as the "
        f"best. **{name}** sorts {view} of news with a macro-F1 of **{useful.said(0)}**, and "
        f"{leak_said(leak.f1, leak.recall, is_bold=True)} are read from it; guessing "
        f"comes to {guess_said(leak.f1.chance)}. {F1_TOLD}.",
        figure=plain_figure(representations_figure(points, view=f"{view} of news ")),
        alt=f"Words recovered against usefulness, a point for each of {best.n_compared} encoders "
        "and each attack",
        table=_compared(best),
        facts=(
            ("Data", "news, strange to the attacks" if domain == "cross" else "news"),
            ("n", f"{leak.f1.n:,} sentences attacked; {useful.n:,} articles sorted"),
            ("Interval", INTERVAL),
            *attacker_facts(leak.attack, leak.n_fitted_on),
            *origin(each for p in points for each in p.leak.provenances),
        ),
        commands=(command_of("representations"), command_of("classification")),
    )


def _verdict(best: Finding) -> str:
    name = encoder_title(best.best.leak.encoder)
    if best.tied:
        return f"{name} and {len(best.tied)} more leak least of the most useful encoders"
    if len(best.as_useful) == 1 and not best.leak_less:
        return f"{name} is the most useful encoder, and none leaks less"
    if len(best.as_useful) == 1:
        return f"{name} is the most useful encoder; what leaks less is less useful"
    return f"{name} leaks least of the most useful encoders"


def _compared(best: Finding) -> Table:
    kept: dict[str, Point] = {
        p.leak.encoder: p for p in (*best.as_useful, *best.leak_less) if p.useful
    }
    return Table(
        columns=("Encoder", "Useful, macro-F1", "Leaks, F1", "By"),
        rows=tuple(
            (
                encoder_title(name),
                point.useful.said(0) if point.useful else "",
                point.leak.f1.said(0),
                INVERSION_ATTACKS[point.leak.attack].title,
            )
            for name, point in kept.items()
        ),
    )


def pages() -> Slide:
    """Return why the pages' figures differ: each with its texts and its attacker."""
    found = leak_figures()
    if not found:
        raise ArtifactError("None of the files with the pages' figures can be read.")
    return Slide(
        title=f"One encoder, several figures{_range_said(found.values())}",
        body="How much is read depends on the texts and on the attacker. **None of these is the "
        "most that could be read.**",
        table=Table(
            columns=("Page", "Read", "n", "Texts", "Attacker"),
            rows=tuple(
                (PAGES[f.page], f.said, f"{f.score.n:,}", f.texts, f.attacker)
                for f in found.values()
            ),
        ),
        facts=(
            ("Data", "of each page its own, in the table"),
            ("n", "of each page its own, in the table"),
            ("Interval", INTERVAL),
            ("Attacker", "of each page its strongest, in the table"),
            ("Access", "the vectors, and texts of the attacker's own with their vectors"),
            ("Cost", "what each attacker was taught by, in the table"),
        ),
        commands=tuple(command_of(t) for t in ("inversion-bbc", "representations", "tradeoff")),
    )  # fmt: skip


def _range_said(figures: Iterable[LeakFigure]) -> str:
    """Return from how many to how many of ten words are read, of the pages that count words."""
    recalls = [figure.recall for figure in figures if figure.recall is not None]
    if not recalls:
        return ""
    least, most = of_ten(min(recalls)), of_ten(max(recalls))
    if least == most:
        return f": {most} on each page that counts them"
    return f": from {least.removesuffix(' of 10 words')} to {most}"


def origin(found: Any) -> tuple[Fact, ...]:
    """Return when, by what and on what machine it was measured, where that is recorded."""
    known: Sequence[Provenance | None] = list(found)
    told = measured_said(known)
    measured = (("Measured", told.removeprefix("measured ")),) if told else ()
    return (*measured, *versions_of(each.versions for each in known if each is not None))


def versions_of(found: Iterable[Mapping[str, str]]) -> tuple[Fact, ...]:
    """Return the versions that measurements were made with, of Python and what computes."""
    told = {versions_told(each): None for each in found}
    return (("Versions", "; ".join(filter(None, told))),) if any(told) else ()
