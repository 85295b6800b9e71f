"""The visitor's own classifier: upload of its outputs, attacks as a job, and results."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from leakscope.core.attacks.membership.classifiers.limits import MOST_UPLOADED_CELLS, describe_rows
from leakscope.core.attacks.membership.classifiers.own_file import attack_example, attack_upload
from leakscope.core.attacks.membership.rates import COARSE
from leakscope.core.attacks.membership.score_distribution import score_shares
from leakscope.core.corpora.readers.memory_file import MemoryFile
from leakscope.core.corpora.readers.tables import TABLE_TYPES
from leakscope.core.corpora.uploads import MAX_UPLOAD_BYTES
from leakscope.core.figures.membership import score_figure
from leakscope.core.findings.membership import describe_plan
from leakscope.core.findings.prose import plain
from leakscope.dashboard.membership import state
from leakscope.dashboard.membership.state import OwnRequest
from leakscope.dashboard.ui import work
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_json
from leakscope.dashboard.ui.state import keep_choice

if TYPE_CHECKING:
    from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome
    from leakscope.core.attacks.membership.classifiers.own_file import AttackedOutputs


def adopt_own_job() -> None:
    """Restore the classifier's request from a job that the URL names, after a reload."""
    for request in work.adopt_jobs(OwnRequest):
        state.set_request(request)


def attack_result() -> AttackedOutputs | None:
    """Draw the upload and the job that attacks the file; return the result, None until done."""
    file = _source_controls()
    request = state.requested()
    work.drop_others(OwnRequest, lambda other: other == request)
    if request is None:
        return None
    known = state.own_of(request)
    if known is None:
        if not work.is_known(request):
            _start(file, request)
        if state.requested() is None:
            return None
        offer = work.Offer(
            label="Run the attacks",
            key="membership-attack-own",
            on_click=partial(_start, file),
            failed="This classifier cannot be attacked",
            is_primary=True,
        )
        done = work.draw_job(request, offer)
        known = None if done is None else state.remember_own(request, done.result)
    if known is not None and known.is_simulated:
        st.warning(
            "**Simulated.** No classifier was trained and no text was read. A random generator "
            "made every score below, to show what the page does with your own file.",
            icon=":material/casino:",
        )
    return known


def _source_controls() -> MemoryFile | None:
    """Draw the upload and the example button, and set the request; return the file, or None."""
    st.markdown(
        "Upload a table with your classifier's probabilities for samples that it was trained on "
        "and for others. It needs the columns `member` (1 or 0), `label`, and `p_CLASS` for each "
        "class. Optional columns are `user`, and `text` or `sample` to identify each row. With "
        "`text`, the page also tests whether words alone reveal the members.\n\nStronger attacks "
        "need further classifiers, called shadow models. Train each in the same way on another "
        "random half of the samples. Add their rows to the table, and write each model's number in "
        "the column `shadow`."
    )
    sent = st.file_uploader(
        "Your classifier's probabilities",
        type=list(TABLE_TYPES),
        key=state.FILE_KEY,
        help=f"CSV, TSV, JSON or Parquet, as for `leakscope membership --probabilities`. At most "
        f"{MAX_UPLOAD_BYTES // 2**20} MB and {MOST_UPLOADED_CELLS:,} probabilities (rows times "
        f"classes): {describe_rows(MOST_UPLOADED_CELLS, 100)}, or "
        f"{describe_rows(MOST_UPLOADED_CELLS, 10_000)}. The file stays in this computer's memory "
        "for your session. It is never written to disk or sent anywhere.",
    )
    request = state.requested()
    file = None
    if sent is not None:
        file = MemoryFile(sent.name, sent.getvalue())
        digest = hashlib.sha256(file.content).hexdigest()
        if st.session_state.get("_membership_sent") != digest:
            state.set_request(OwnRequest(digest=digest, name=file.name))
        st.session_state["_membership_sent"] = digest
    elif st.session_state.pop("_membership_sent", None) and request and not request.is_example:
        state.forget_request()
    st.button(
        "Show a made-up example",
        key="membership-example",
        icon=":material/casino:",
        help="Simulates a classifier and its shadow models with a random generator, and attacks it",
        on_click=state.set_request,
        args=(OwnRequest(),),
    )
    return file


def _start(file: MemoryFile | None, request: OwnRequest) -> None:
    """Start the background attacks on a classifier; forget the request if its file was lost."""
    if request.is_example:
        work.start(request, attack_example)
    elif file is not None:
        work.start(request, attack_upload, file)
    else:  # the file was lost in a reload
        work.drop(request)
        state.forget_request()


def results(found: AttackedOutputs) -> AttackOutcome:
    """Draw notes, a selector of an attack and its scores; return the selected outcome."""
    record = found.record
    for note in record["notes"]:
        st.caption(plain(f"{note[:1].upper()}{note[1:]}."))
    st.caption(
        "95 % CI in brackets. *Found at*: the true-positive rate at that false-positive "
        "rate. *Permuted labels*: the AUC with membership assigned at random, which must be about "
        f"50. The best of several attacks is partly lucky. {COARSE}"
    )
    save_json(
        lambda: json.dumps(record, ensure_ascii=False, indent=1),
        "membership",
        about="The output of `leakscope membership --json` for this file; it contains no text",
    )
    ranked = sorted(found.outcomes, key=lambda one: (not one.is_valid, -one.auc.ci95.low))
    names = {outcome.plan.name: outcome for outcome in ranked}
    keep_choice(state.OWN_ATTACK_KEY, list(names))
    chosen = st.selectbox(
        "One attack in detail",
        list(names),
        key=state.OWN_ATTACK_KEY,
        persist_state="session",
        format_func=lambda name: describe_plan(names[name].plan) if name in names else name,
        help="Sorted by the lower end of the AUC's interval, strongest first",
    )
    one = names[str(chosen)]
    st.markdown("**Scores of members and non-members**")
    st.plotly_chart(
        score_figure(score_shares(one.ranking)),
        key="membership-own-scores",
        config=chart_config("leakscope-membership-scores"),
        alt="Histograms of the scores of members and non-members: the less they overlap, the more "
        "leaks",
    )
    return one
