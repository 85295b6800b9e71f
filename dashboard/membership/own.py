"""A classifier of the visitor's own: its file, the attacks on it as a job, and what they found."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.attacks.membership.classifiers.limits import MOST_UPLOADED_CELLS, rows_said
from core.attacks.membership.classifiers.own_file import attack_example, attack_upload
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.attacks.membership.classifiers.told import leaks_without_model, setting_said
from core.attacks.membership.drawn import score_shares
from core.attacks.membership.rates import COARSE, AtRate
from core.corpora.memory_file import MemoryFile
from core.corpora.tables import TABLE_TYPES
from core.corpora.uploads import MAX_UPLOAD_BYTES
from core.figures.membership import roc_figure, score_figure
from core.results import Interval, Score
from core.said import auc_said, percent_said
from core.spreadsheets import neutral_cell
from dashboard import work
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_json
from dashboard.membership import state
from dashboard.membership.measured import at_said
from dashboard.membership.state import OwnRequest
from dashboard.state import keep_choice

if TYPE_CHECKING:
    from core.attacks.membership.classifiers.evaluation import AttackOutcome, Plan
    from core.attacks.membership.classifiers.own_file import OwnAttacked

__all__ = ["adopt_own_job", "attacked", "finding", "plan_said", "results"]

_LEVELS = {"sample": "samples", "user": "users"}


def adopt_own_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for request in work.adopt(OwnRequest):
        state.want(request)


def attacked() -> OwnAttacked | None:
    """Draw what one gives, and what starts, follows and stops the attacks; return their result."""
    file = _given()
    request = state.asked_request()
    work.drop_others(OwnRequest, lambda other: other == request)
    if request is None:
        return None
    known = state.own_of(request)
    if known is None:
        if not work.is_known(request):
            _start(file, request)
        if state.asked_request() is None:
            return None
        offer = work.Offer(
            label="Attack it",
            key="membership-attack-own",
            on_click=partial(_start, file),
            failed="This classifier cannot be attacked",
            is_primary=True,
        )
        done = work.take(request, offer)
        known = None if done is None else state.remember_own(request, done.result)
    if known is not None and known.is_simulated:
        st.warning(
            "**Simulated.** No classifier was trained and no text was read: every score below "
            "comes of a random generator, to show what the page does with a file of yours.",
            icon=":material/casino:",
        )
    return known


def _given() -> MemoryFile | None:
    """Draw the choice of a file or of the example; return the file, None without one."""
    st.markdown(
        "Give a table of what your classifier answers for samples that it was trained on and for "
        "others: `member` (1 or 0), `label`, a column `p_CLASS` for each class; if known `user`, "
        "and `text` or `sample` to read along; of `text` it is also asked whether words alone tell "
        "members from non-members. Rows of shadow models, trained as yours on other "
        "halves, have their number in `shadow`: with them stronger attacks can be run."
    )
    sent = st.file_uploader(
        "Probabilities of your classifier",
        type=list(TABLE_TYPES),
        key=state.FILE_KEY,
        help=f"CSV, TSV, JSON or Parquet as `core membership --probabilities` reads it. At most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB and {MOST_UPLOADED_CELLS:,} probabilities, which are rows "
        f"times classes: {rows_said(MOST_UPLOADED_CELLS, 100)}, or "
        f"{rows_said(MOST_UPLOADED_CELLS, 10_000)}. The file stays in the memory of this computer, "
        "for your session: nothing of it is written to disk or sent anywhere.",
    )
    request = state.asked_request()
    file = None
    if sent is not None:
        file = MemoryFile(sent.name, sent.getvalue())
        digest = hashlib.sha256(file.content).hexdigest()
        if st.session_state.get("_membership_sent") != digest:
            state.want(OwnRequest(digest=digest, name=file.name))
        st.session_state["_membership_sent"] = digest
    elif st.session_state.pop("_membership_sent", None) and request and not request.is_example:
        state.forget_request()
    st.button(
        "Show a made-up example",
        key="membership-example",
        icon=":material/casino:",
        help="Simulates a classifier and its shadow models by a random generator, and attacks it",
        on_click=state.want,
        args=(OwnRequest(),),
    )
    return file


def _start(file: MemoryFile | None, request: OwnRequest) -> None:
    """Start the attacks; forget what is asked for where its file is not there any more."""
    if request.is_example:
        work.start(request, attack_example)
    elif file is not None:
        work.start(request, attack_upload, file)
    else:  # the page was reloaded, and the file went with it
        work.drop(request)
        state.forget_request()


def results(found: OwnAttacked, chart: Any = None) -> AttackOutcome:
    """Draw what the attacks reached, and one of them in detail; return that one.

    Parameters
    ----------
    chart : container, optional
        Where its curve goes, if not beside its scores: above the fold, for a file of one's own.
    """
    record = found.record
    if chart is None:  # else the finding of the page says both
        _verdict(found)
        st.markdown(_counted(record))
    for note in record["notes"]:
        st.caption(plain(f"{note[:1].upper()}{note[1:]}."))
    ranked = sorted(found.outcomes, key=lambda one: (not one.is_valid, -one.auc.ci95.low))
    lines = [*map(_line, ranked), *_lines_without_model(record)]
    st.dataframe(lines, key="membership-own", hide_index=True)
    st.caption(
        "In brackets the 95 % interval. *Found at* a share of non-members falsely accused. *By "
        "lot*: the AUC where membership is dealt by lot; it must be about 50. The best of "
        f"several attacks is a little lucky. {COARSE}"
    )
    save_json(
        lambda: json.dumps(record, ensure_ascii=False, indent=1),
        "membership",
        about="What `core membership --json` tells of the same file; it holds no text",
    )
    names = {outcome.plan.name: outcome for outcome in ranked}
    keep_choice(state.OWN_ATTACK_KEY, list(names))
    chosen = st.selectbox(
        "One attack in detail",
        list(names),
        key=state.OWN_ATTACK_KEY,
        persist_state="session",
        format_func=lambda name: plan_said(names[name].plan) if name in names else name,
        help="The strongest stands first, by the lower end of the interval of its AUC",
    )
    one = names[str(chosen)]
    if not one.is_valid:
        st.warning(_NOT_VALID, icon=":material/block:")
    _figures(one, chart)
    return one


def finding(slot: Any, found: OwnAttacked) -> None:
    """Draw the verdict on the visitor's own file as the finding of the page."""
    first, _, rest = str(found.record["verdict"]).partition(". ")
    slot.title(f"Your classifier: {plain(first.removesuffix('.'))}", anchor=False)
    if rest:
        slot.markdown(plain(rest))
    if leaks_without_model(found.record):
        slot.warning(
            "Something other than the classifier tells members from others: what the attacks "
            "find is no evidence of a leak. The notes below say what to change.",
            icon=":material/warning:",
        )
    slot.markdown(_counted(found.record))


def _verdict(found: OwnAttacked) -> None:
    """Draw what the attacks found; a warning where something other than the model tells members."""
    told = f"**{plain(found.record['verdict'])}**"
    if leaks_without_model(found.record):
        st.warning(told, icon=":material/warning:")
    else:
        st.info(told, icon=":material/gavel:")


_NOT_VALID = (
    "**Not valid here.** Which shadow models hold a sample predicts whether the classifier does: "
    "this attack would find members where nothing leaks. Train each shadow model on a random half "
    "of all samples, drawn without regard to the classifier's own."
)


def _lines_without_model(record: dict[str, Any]) -> list[dict[str, object]]:
    """Return what predicts members without the classifier, as lines of the table."""
    titles = {
        "blind_baseline": "Blind baseline: the texts alone, without the classifier",
        "shadow_design": "Shadow design alone: who is in which shadow model",
    }
    found: list[dict[str, object]] = []
    for name, title in titles.items():
        if (told := record[name]) is not None:
            auc = Score(told["auc"], Interval(*told["auc_ci95"]), told["n_units"], 0.5)
            mark = "above chance" if told["is_above_chance"] else "not above chance"
            said = f"{auc_said(auc)}, {mark} (p = {told['p_value']:.2g})"
            found.append({"attack": title, "AUC": said})
    return found


def _counted(record: dict[str, Any]) -> str:
    n, n_members, n_users = record["n"], record["n_members"], record["n_users"]
    of_users = "" if n_users is None else f" of {n_users:,} users"
    return (
        f"{n:,} samples{of_users}, {n_members:,} of them members; {record['n_classes']:,} classes; "
        f"{record['n_shadows']} shadow models. The classifier is right on "
        f"{percent_said(record['accuracy_on_members'], 1)} of members and "
        f"{percent_said(record['accuracy_on_others'], 1)} of others."
    )


def plan_said(plan: Plan) -> str:
    """Return an attack with its settings in words."""
    told = ", ".join(setting_said(value) for value in plan.settings.values())
    title = CLASSIFIER_ATTACKS[plan.attack].title
    return f"{title}{f': {told}' if told else ''} ({_LEVELS[plan.level]})"


def _line(outcome: AttackOutcome) -> dict[str, object]:
    return {
        "attack": neutral_cell(plan_said(outcome.plan)),
        "AUC": auc_said(outcome.auc),
        **{f"found at {100 * at.fpr:g} %": _found(outcome, at) for at in outcome.at},
        "by lot": f"{100 * outcome.control.value:.1f}",
    }


def _found(outcome: AttackOutcome, at: AtRate) -> str:
    if not outcome.is_valid:
        return "not valid"
    said = at_said(at)
    return said.partition(",")[0] if said.startswith("not") else said


def _figures(one: AttackOutcome, chart: Any = None) -> None:
    if chart is None:
        left, right = st.columns(2)
    else:
        left, right = chart, st.container()
    left.markdown(f"**Found against falsely accused**: {plan_said(one.plan)}")
    left.plotly_chart(
        roc_figure(state.curve_of(one)),
        key="membership-own-roc",
        config=chart_config("leakscope-membership-own"),
        alt="Share of members found against share of non-members falsely accused, on logarithmic "
        "axes, with its 95 % interval and the line of chance; the table above tells the rates",
    )
    right.markdown("**Scores of members and of non-members**")
    right.plotly_chart(
        score_figure(score_shares(one.ranking)),
        key="membership-own-scores",
        config=chart_config("leakscope-membership-scores"),
        alt="How the scores of members and of non-members lie: the less they overlap, the more "
        "leaks",
    )
