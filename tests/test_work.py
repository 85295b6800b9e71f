from __future__ import annotations

import gc
from typing import Any

import pytest

from leakscope.core.jobs import Job, JobState
from leakscope.core.specs import EncoderSpec
from leakscope.dashboard import cache
from leakscope.dashboard.ui import work


def job(**known: Any) -> Job:
    given = {
        "id": "x",
        "request": None,
        "fraction": 0.0,
        "message": "Encoding",
        "seconds": 0.0,
        "owner": "me",
    }
    return Job(**{**given, **known})


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (
            job(state=JobState.WAITING, n_before=2, seconds_left=40.2),
            "Waiting: 2 jobs before yours, about 40 s",
        ),
        (job(state=JobState.WAITING, n_before=1), "Waiting: 1 job before yours"),
        (job(state=JobState.RUNNING, seconds=12.0), "Encoding (12 s)"),
        (
            job(state=JobState.RUNNING, seconds=12.0, seconds_left=600.0),
            "Encoding (12 s, about 10 min left)",
        ),
    ],
)
def test_who_waits_is_told_place_and_time(seen: Job, told: str) -> None:
    assert work._describe_progress(seen) == told


@pytest.mark.slow
def test_what_an_encoder_brings_is_out_of_the_collectors_way() -> None:
    """Streamlit collects after each script: among all objects of torch that takes long."""
    gc.unfreeze()
    cache.encoder.clear()
    cache.encoder(EncoderSpec())
    assert gc.get_freeze_count() > 10 * len(gc.get_objects())
