from __future__ import annotations

import logging
import threading
import time

import pytest

from core.errors import InvalidInputError
from core.jobs import Job, Jobs, JobState
from core.protocols import OnProgress


def final(jobs: Jobs, job_id: str) -> Job:
    job = jobs.wait(job_id, timeout=10)
    assert job is not None and job.is_final
    return job


class Gate:
    """Work that reports once, then waits until it is let through."""

    def __init__(self) -> None:
        self.is_running, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, on_progress: OnProgress) -> str:
        on_progress(0.25, "A quarter")
        self.is_running.set()
        assert self.may_go_on.wait(10)
        on_progress(0.5, "Half")
        return "result"


def test_a_job_reports_progress_and_returns_its_result() -> None:
    jobs, gate = Jobs(), Gate()
    job_id = jobs.start(gate, request="the request")
    assert gate.is_running.wait(10)
    running = jobs.view(job_id)
    assert running is not None
    assert (running.state, running.fraction, running.message) == (
        JobState.RUNNING,
        0.25,
        "A quarter",
    )
    assert running.request == "the request" and running.result is None
    gate.may_go_on.set()
    done = final(jobs, job_id)
    assert (done.state, done.result, done.error) == (JobState.DONE, "result", "")
    assert 0 < done.seconds < 10


def test_stopping_ends_the_work_at_its_next_sign_of_progress() -> None:
    jobs, gate = Jobs(), Gate()
    job_id = jobs.start(gate)
    assert gate.is_running.wait(10)
    jobs.stop(job_id)
    stopping = jobs.view(job_id)
    assert stopping is not None and stopping.state is JobState.RUNNING
    gate.may_go_on.set()
    assert final(jobs, job_id).state is JobState.STOPPED
    assert final(jobs, job_id).result is None


def test_jobs_run_one_at_a_time_and_a_waiting_one_stops_at_once() -> None:
    jobs, first = Jobs(), Gate()
    ran: list[str] = []
    first_id = jobs.start(first)
    second_id = jobs.start(lambda _: ran.append("second"))
    third_id = jobs.start(lambda _: ran.append("third"))
    assert first.is_running.wait(10)
    waiting = jobs.view(second_id)
    assert waiting is not None and waiting.state is JobState.WAITING and ran == []
    jobs.stop(second_id)
    assert final(jobs, second_id).state is JobState.STOPPED
    first.may_go_on.set()
    assert final(jobs, first_id).state is JobState.DONE
    assert final(jobs, third_id).state is JobState.DONE
    assert ran == ["third"]


def test_the_queue_is_bounded() -> None:
    jobs, gate = Jobs(max_waiting=2), Gate()
    jobs.start(gate)
    assert gate.is_running.wait(10)
    jobs.start(lambda _: None)
    jobs.start(lambda _: None)
    with pytest.raises(InvalidInputError, match="2 slow attacks are waiting already"):
        jobs.start(lambda _: None)
    gate.may_go_on.set()


def test_a_core_error_is_told_as_it_is() -> None:
    def work(_: OnProgress) -> None:
        raise InvalidInputError("text is empty. Type at least one word.")

    jobs = Jobs()
    job = final(jobs, jobs.start(work))
    assert (job.state, job.error) == (JobState.FAILED, "text is empty. Type at least one word.")


def test_another_error_reaches_neither_page_nor_log(caplog: pytest.LogCaptureFixture) -> None:
    typed = " ".join(["what", "the", "user", "typed"])

    def work(_: OnProgress) -> None:
        raise RuntimeError(typed)

    jobs = Jobs()
    with caplog.at_level(logging.ERROR):
        job = final(jobs, jobs.start(work))
    assert job.state is JobState.FAILED and "fault of ours" in job.error
    assert typed not in job.error + caplog.text
    assert "RuntimeError" in caplog.text and "test_jobs.py" in caplog.text


def test_the_queue_survives_a_failed_job() -> None:
    def work(_: OnProgress) -> None:
        raise RuntimeError

    jobs = Jobs()
    jobs.start(work)
    assert final(jobs, jobs.start(lambda _: 7)).result == 7


def test_finished_jobs_are_forgotten_after_a_while_and_running_ones_are_not() -> None:
    jobs, gate = Jobs(keep_seconds=0.05), Gate()
    done_id = jobs.start(lambda _: "secret")
    assert final(jobs, done_id).result == "secret"
    running_id = jobs.start(gate)
    assert gate.is_running.wait(10)
    time.sleep(0.1)
    assert jobs.view(done_id) is None
    assert jobs.view(running_id) is not None
    gate.may_go_on.set()


def test_forgetting_drops_request_and_result() -> None:
    jobs = Jobs()
    job_id = jobs.start(lambda _: "result")
    final(jobs, job_id)
    jobs.forget(job_id)
    assert jobs.view(job_id) is None
    jobs.forget("no such job")
    jobs.stop("no such job")


def test_ids_cannot_be_guessed() -> None:
    jobs = Jobs(max_waiting=100)
    ids = {jobs.start(lambda _: None) for _ in range(50)}
    assert len(ids) == 50 and min(map(len, ids)) >= 22  # 128 bits in base 64


def test_the_thread_is_prepared_once() -> None:
    prepared: list[str] = []
    jobs = Jobs(on_thread_start=lambda: prepared.append(threading.current_thread().name))
    for _ in range(3):
        final(jobs, jobs.start(lambda _: None))
    assert prepared == ["jobs"]


def test_work_that_nobody_follows_any_more_is_stopped() -> None:
    jobs, gate = Jobs(abandon_seconds=1.0), Gate()
    job_id = jobs.start(gate)
    assert gate.is_running.wait(10)
    time.sleep(1.1)
    gate.may_go_on.set()
    time.sleep(0.3)  # without a look at it
    assert final(jobs, job_id).state is JobState.STOPPED


def test_work_that_nobody_looks_at_gives_way_sooner_where_another_waits() -> None:
    jobs, alone, left = Jobs(crowded_seconds=0.2), Gate(), Gate()
    first = jobs.start(alone)
    assert alone.is_running.wait(10)
    time.sleep(0.4)
    alone.may_go_on.set()
    assert final(jobs, first).state is JobState.DONE, "nobody waits"
    second = jobs.start(left)
    assert left.is_running.wait(10)
    third = jobs.start(lambda _: "its turn")
    time.sleep(0.4)
    left.may_go_on.set()
    assert final(jobs, third).result == "its turn"
    assert final(jobs, second).state is JobState.STOPPED
