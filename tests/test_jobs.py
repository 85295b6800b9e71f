from __future__ import annotations

import logging
import os
import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import job_work
import numpy as np
import processes
import pytest
from processes import is_running, wait_until

from leakscope.core.errors import InvalidInputError
from leakscope.core.jobs import Job, Jobs, JobState, Patience, running
from leakscope.core.jobs.job import DurationEstimates, Ended, Entry
from leakscope.core.jobs.queue import FairQueue

LONG = 60.0
"""Seconds that nothing here takes, however busy the machine."""


@pytest.fixture
def make_jobs() -> Iterator[Callable[..., Jobs]]:
    """Make queues that end with the test."""
    made: list[Jobs] = []

    def make(**settings: object) -> Jobs:
        made.append(Jobs(**settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for jobs in made:
        jobs.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Jobs]:
    """A queue with a warm process, for tests that leave it as it was."""
    jobs = Jobs()
    yield jobs
    jobs.close()


def final(jobs: Jobs, job_id: str) -> Job:
    job = jobs.wait(job_id, timeout=LONG)
    assert job is not None and job.is_final
    return job


def seen(jobs: Jobs, job_id: str) -> Job:
    job = jobs.view(job_id)
    assert job is not None
    return job


def started(jobs: Jobs, folder: Path, **settings: str) -> str:
    """Start a gate and follow it until it runs."""
    job_id = jobs.start(job_work.wait_at_gate, folder, **settings)
    wait_until(lambda: seen(jobs, job_id) is not None and (folder / "runs").exists())
    return job_id


def followed(jobs: Jobs, job_id: str) -> Job:
    """Look at a job until it has ended: one that nobody looks at may be given up."""
    wait_until(lambda: seen(jobs, job_id).is_final)
    return seen(jobs, job_id)


def test_a_job_reports_progress_and_returns_its_result(shared: Jobs, tmp_path: Path) -> None:
    job_id = shared.start(job_work.wait_at_gate, tmp_path, request="the request")
    wait_until(lambda: seen(shared, job_id).fraction > 0)
    now = seen(shared, job_id)
    assert (now.state, now.fraction, now.message) == (JobState.RUNNING, 0.25, "A quarter")
    assert now.request == "the request" and now.result is None
    (tmp_path / "go").touch()
    done = final(shared, job_id)
    assert (done.state, done.result, done.error) == (JobState.DONE, "result", "")
    assert 0 < done.seconds < LONG


def test_arrays_come_back_as_they_went(shared: Jobs) -> None:
    array = np.random.default_rng(0).normal(size=(2000, 384)).astype(np.float32)
    found = final(shared, shared.start(job_work.return_value, {"array": array})).result
    np.testing.assert_array_equal(found["array"], array)


def test_work_runs_in_a_process_that_stays_for_the_next_and_not_in_this_one(shared: Jobs) -> None:
    first, second = (final(shared, shared.start(job_work.pid)).result for _ in range(2))
    assert first == second != os.getpid()


def test_the_main_module_of_the_server_does_not_run_again(shared: Jobs) -> None:
    ours = final(shared, shared.start(job_work.main_file)).result
    assert Path(ours).name == "child.py"


def test_work_that_another_process_cannot_find_is_refused_at_once(shared: Jobs) -> None:
    with pytest.raises(TypeError, match="not a function of a module"):
        shared.start(lambda _: None)


def test_stopping_ends_the_work_at_its_next_sign_of_progress(shared: Jobs, tmp_path: Path) -> None:
    process = final(shared, shared.start(job_work.pid)).result
    job_id = started(shared, tmp_path)
    shared.stop(job_id)
    (tmp_path / "go").touch()
    stopped = final(shared, job_id)
    assert stopped.state is JobState.STOPPED and stopped.result is None
    assert final(shared, shared.start(job_work.pid)).result == process, "it stayed warm"


def test_work_that_is_stopped_may_hand_over_the_best_so_far(shared: Jobs, tmp_path: Path) -> None:
    job_id = shared.start(job_work.best_so_far, tmp_path)
    wait_until((tmp_path / "runs").exists)
    shared.stop(job_id)
    stopped = final(shared, job_id)
    assert stopped.state is JobState.STOPPED and stopped.result == ["the best so far"]


def test_what_ended_by_itself_after_it_was_to_stop_is_stopped_and_hands_nothing_over() -> None:
    entry = Entry("id", "kind", None, b"", "owner", must_stop=True)
    entry.finish(Ended(state=JobState.DONE, result="found meanwhile"))
    assert entry.state is JobState.STOPPED and entry.result is None
    entry = Entry("id", "kind", None, b"", "owner")
    entry.finish(Ended(state=JobState.DONE, result="found"))
    assert entry.state is JobState.DONE and entry.result == "found"


@pytest.mark.slow
@pytest.mark.parametrize("work", [job_work.hold_the_interpreter, job_work.swallow_the_stop])
def test_stopping_takes_two_seconds_at_most_whatever_the_work_does(
    make_jobs: Callable[..., Jobs], tmp_path: Path, work: Callable[..., object]
) -> None:
    jobs = make_jobs()
    job_id = jobs.start(work, tmp_path)
    wait_until((tmp_path / "pids").exists)
    clicked = time.monotonic()
    jobs.stop(job_id)
    stopped = final(jobs, job_id)
    assert time.monotonic() - clicked <= 2.0
    assert stopped.state is JobState.STOPPED
    ours, child = map(int, (tmp_path / "pids").read_text().split())
    assert not is_running(ours) and not Path(f"/proc/{ours}").exists(), "no zombie"
    wait_until(lambda: not is_running(child))
    assert final(jobs, jobs.start(job_work.return_value, 7)).result == 7


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.01, 0.05, 0.1, 0.2, 0.4])
def test_a_stop_is_never_lost_however_early(
    make_jobs: Callable[..., Jobs], tmp_path: Path, delay: float
) -> None:
    jobs = make_jobs()
    job_id = jobs.start(job_work.wait_at_gate, tmp_path)
    time.sleep(delay)
    jobs.stop(job_id)
    assert final(jobs, job_id).state is JobState.STOPPED
    assert final(jobs, jobs.start(job_work.return_value, 7)).result == 7


def test_a_job_that_waits_is_stopped_at_once_and_never_runs(
    make_jobs: Callable[..., Jobs], tmp_path: Path
) -> None:
    jobs = make_jobs()
    first = started(jobs, tmp_path)
    second = jobs.start(job_work.append_line, tmp_path / "second")
    third = jobs.start(job_work.append_line, tmp_path / "third")
    assert seen(jobs, second).state is JobState.WAITING
    jobs.stop(second)
    assert seen(jobs, second).state is JobState.STOPPED
    (tmp_path / "go").touch()
    assert final(jobs, first).state is JobState.DONE
    assert final(jobs, third).state is JobState.DONE
    assert (tmp_path / "third").exists() and not (tmp_path / "second").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "told"),
    [
        (job_work.system_exit, "bug in Leakscope"),
        (job_work.exit_process, "without a result (exit status 3). Try again"),
        (job_work.crash, "crashed (SIGSEGV). Try again"),
        (job_work.kill_itself, "usually because memory ran out. Use fewer"),
        (job_work.exceed_memory, "not enough memory. Use fewer"),
        (job_work.return_unpicklable, "bug in Leakscope"),
    ],
)
def test_a_job_that_ends_badly_says_so_and_the_next_one_runs(
    make_jobs: Callable[..., Jobs], work: Callable[..., object], told: str
) -> None:
    jobs = make_jobs()
    job_id, waiting = jobs.start(work), jobs.start(job_work.return_value, 7)
    job = final(jobs, job_id)
    assert job.state is JobState.FAILED and told in job.error
    assert final(jobs, waiting).result == 7


@pytest.mark.slow
def test_a_process_that_is_killed_between_two_jobs_costs_nothing(
    make_jobs: Callable[..., Jobs],
) -> None:
    jobs = make_jobs()
    process = final(jobs, jobs.start(job_work.pid)).result
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: not is_running(process))
    assert final(jobs, jobs.start(job_work.pid)).result != process


def test_a_child_that_a_job_leaves_behind_ends_with_it(
    make_jobs: Callable[..., Jobs], tmp_path: Path
) -> None:
    jobs = make_jobs()
    final(jobs, jobs.start(job_work.leave_a_child, tmp_path))
    ours, child = map(int, (tmp_path / "pids").read_text().split())
    wait_until(lambda: not is_running(child) and not is_running(ours))


@pytest.mark.slow
def test_an_idle_process_ends_after_a_while(make_jobs: Callable[..., Jobs]) -> None:
    jobs = make_jobs(idle_seconds=0.05)
    process = final(jobs, jobs.start(job_work.pid)).result
    wait_until(lambda: not is_running(process))
    assert final(jobs, jobs.start(job_work.return_value, 7)).result == 7


SERVER = """
import sys, time
from pathlib import Path
import job_work
from leakscope.core.jobs import Jobs
Jobs().start(job_work.{work}, Path(sys.argv[1]))
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("work", ["hold_the_interpreter", "swallow_the_stop", "leave_a_child"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_server_ends_its_jobs(
    tmp_path: Path, work: str, how: signal.Signals
) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER.format(work=work))
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "tests")])}
    with processes.running_process([sys.executable, script, tmp_path], env=environment) as server:
        wait_until((tmp_path / "pids").exists)
        server.send_signal(how)
        server.wait(LONG)
        for pid in map(int, (tmp_path / "pids").read_text().split()):
            wait_until(lambda pid=pid: not is_running(pid))  # type: ignore[misc]


class Request:
    """What can be referred to weakly."""


@pytest.mark.slow
@pytest.mark.parametrize("is_old", [True, False], ids=["it is old", "it is forgotten"])
def test_what_is_forgotten_is_held_no_longer_though_nobody_asks(
    make_jobs: Callable[..., Jobs], is_old: bool
) -> None:
    jobs, request = make_jobs(keep_seconds=0.2 if is_old else 600.0), Request()
    left = weakref.ref(request)
    job_id = jobs.start(job_work.return_value, 1, request=request)
    jobs.wait(job_id, LONG)
    del request
    if not is_old:
        jobs.forget(job_id)
    wait_until(lambda: left() is None)
    assert not jobs._entries


def test_a_fault_while_a_process_starts_costs_its_job_alone(
    make_jobs: Callable[..., Jobs], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, start = make_jobs(), running.Worker
    faults: list[Exception] = [RuntimeError("can't start new thread"), OSError("no room")]

    def worker() -> running.Worker:
        if faults:
            raise faults.pop(0)
        return start()

    monkeypatch.setattr(running, "Worker", worker)
    states = [final(jobs, jobs.start(job_work.return_value, 1)).state for _ in range(3)]
    assert states == [JobState.FAILED, JobState.FAILED, JobState.DONE]


@pytest.mark.slow
def test_who_leaves_while_waiting_costs_nobody_the_warm_process(
    make_jobs: Callable[..., Jobs], tmp_path: Path
) -> None:
    jobs = make_jobs(patience=Patience(abandon_seconds=0.5))
    warm = followed(jobs, jobs.start(job_work.pid)).result
    first = started(jobs, tmp_path)
    left = jobs.start(job_work.return_value, 1)
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        seen(jobs, first)
        time.sleep(0.02)
    (tmp_path / "go").touch()
    assert followed(jobs, first).state is JobState.DONE
    assert final(jobs, left).state is JobState.STOPPED
    assert followed(jobs, jobs.start(job_work.pid)).result == warm


@pytest.mark.slow
def test_visitors_take_turns(make_jobs: Callable[..., Jobs], tmp_path: Path) -> None:
    jobs = make_jobs()
    running = started(jobs, tmp_path, owner="greedy")
    more = [jobs.start(job_work.return_value, i, owner="greedy") for i in range(3)]
    other = jobs.start(job_work.return_value, "other", owner="other")
    assert [seen(jobs, job_id).n_before for job_id in (running, *more, other)] == [0, 2, 3, 4, 1]
    jobs.stop(more[0])
    assert [seen(jobs, job_id).n_before for job_id in more[1:]] == [2, 3]
    (tmp_path / "go").touch()
    assert final(jobs, other).result == "other"


def test_who_had_a_turn_goes_to_the_end_of_the_line() -> None:
    turns: FairQueue[str] = FairQueue()
    for owner in "aaab":
        turns.add(owner, owner)
    assert turns.take() == "a"
    turns.add("c", "c")
    turns.add("a", "late")
    order = turns.in_order()
    assert order == ["b", "c", "a", "a", "late"] and turns.count("a") == 3
    assert [turns.take() for _ in range(len(turns))] == order
    assert len(turns) == 0


@pytest.mark.slow
def test_one_visitor_cannot_fill_the_queue(make_jobs: Callable[..., Jobs], tmp_path: Path) -> None:
    jobs = make_jobs(max_waiting=3, max_waiting_each=2)
    started(jobs, tmp_path, owner="a")
    for _ in range(2):
        jobs.start(job_work.return_value, 0, owner="a")
    with pytest.raises(InvalidInputError, match="already have 2 waiting jobs"):
        jobs.start(job_work.return_value, 0, owner="a")
    jobs.start(job_work.return_value, 0, owner="b")
    with pytest.raises(InvalidInputError, match="3 jobs of all visitors are already waiting"):
        jobs.start(job_work.return_value, 0, owner="c")
    (tmp_path / "go").touch()


@pytest.mark.slow
def test_who_comes_back_by_another_name_gets_no_other_turn(
    make_jobs: Callable[..., Jobs], tmp_path: Path
) -> None:
    jobs = make_jobs(max_waiting=8, max_waiting_each=2)
    started(jobs, tmp_path, owner="first", share="there")
    more = [
        jobs.start(job_work.return_value, i, owner=f"name {i}", share="there") for i in range(5)
    ]
    other = jobs.start(job_work.return_value, 9, owner="other", share="elsewhere")
    order = [seen(jobs, job_id).n_before for job_id in (*more, other)]
    assert order == [2, 3, 4, 5, 6, 1], "one turn for all of them, as they came"
    jobs.start(job_work.return_value, 6, owner="name 6", share="there")
    with pytest.raises(InvalidInputError, match="6 jobs from your address or account are already"):
        jobs.start(job_work.return_value, 7, owner="name 7", share="there")
    assert jobs.start(job_work.return_value, 8, owner="another", share="third"), (
        "there is room for others"
    )
    (tmp_path / "go").touch()


def test_those_of_one_share_take_turns_among_themselves() -> None:
    turns: FairQueue[str] = FairQueue()
    for owner, share in ("ax", "ax", "bx", "cy", "cy"):
        turns.add(owner, owner, share=share)
    turns.add("d", "d")
    order = turns.in_order()
    assert order == ["a", "c", "d", "b", "c", "a"]
    assert [turns.take() for _ in range(len(turns))] == order and turns.count_of_share("x") == 0


@pytest.mark.slow
def test_who_waits_is_told_how_long_once_that_is_known(
    make_jobs: Callable[..., Jobs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How far it is tells nothing here.
    monkeypatch.setattr("leakscope.core.jobs.job._LEAST_SECONDS", 1e9)
    jobs = make_jobs()
    (tmp_path / "go").touch()
    taken = final(jobs, started(jobs, tmp_path)).seconds
    (tmp_path / "go").unlink()
    (tmp_path / "runs").unlink()
    running, known = started(jobs, tmp_path), jobs.start(job_work.wait_at_gate, tmp_path)
    unknown = jobs.start(job_work.append_line, tmp_path / "x")
    last = jobs.start(job_work.return_value, 0)
    wait_until(lambda: seen(jobs, running).seconds > taken)
    assert seen(jobs, running).seconds_left is None, "it takes longer than the last of its kind"
    assert [seen(jobs, j).seconds_left for j in (known, unknown, last)] == [None] * 3
    (tmp_path / "go").touch()
    assert final(jobs, last).seconds_left is None


def test_time_left_is_judged_by_the_last_of_a_kind_and_by_how_far_it_is() -> None:
    def entry(kind: str, seconds: float = 0.0, fraction: float = 0.0) -> Entry:
        begun = time.monotonic() - seconds if seconds else 0.0
        return Entry("id", kind, None, b"", "", started=begun, fraction=fraction)

    pace, ended = DurationEstimates(), entry("a", 100.0)
    ended.ended = ended.started + 100
    pace.record_duration(ended)
    assert pace.seconds_left([entry("a", 30.0)]) == pytest.approx(70, abs=1)
    assert pace.seconds_left([entry("a", 30.0), entry("a")]) == pytest.approx(170, abs=1)
    assert pace.seconds_left([entry("a", 30.0, 0.5)]) == pytest.approx(30, abs=1), (
        "by how far it is"
    )
    assert pace.seconds_left([entry("b", 30.0)]) is None, "another kind"
    assert pace.seconds_left([entry("a", 130.0)]) is None, "longer than the last"


@pytest.mark.slow
def test_kinds_are_told_apart_by_what_the_caller_says(make_jobs: Callable[..., Jobs]) -> None:
    jobs = make_jobs()
    for kind in ("slow", "quick"):
        final(jobs, jobs.start(job_work.return_value, 0, kind=kind))
    assert len(set(jobs._pace._last)) == 2


@pytest.mark.slow
def test_what_was_taken_is_forgotten_soon_and_not_at_once(make_jobs: Callable[..., Jobs]) -> None:
    jobs = make_jobs()
    job_id = jobs.start(job_work.return_value, 1)
    final(jobs, job_id)
    jobs.forget_after(job_id, 0.5)
    assert seen(jobs, job_id).result == 1, "another tab may take it too"
    wait_until(lambda: not jobs._entries)


def test_a_core_error_is_told_as_it_is(shared: Jobs) -> None:
    job = final(shared, shared.start(job_work.refuse))
    assert (job.state, job.error) == (JobState.FAILED, "text is empty. Type at least one word.")


def test_another_error_reaches_neither_page_nor_log(
    shared: Jobs, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    typed = " ".join(["what", "the", "user", "typed"])
    with caplog.at_level(logging.ERROR):
        job = final(shared, shared.start(job_work.fail, typed))
    assert job.state is JobState.FAILED and "bug in Leakscope" in job.error
    assert typed not in job.error + caplog.text + "".join(capfd.readouterr())
    assert "RuntimeError" in caplog.text and "job_work.py" in caplog.text


@pytest.mark.slow
def test_finished_jobs_are_forgotten_after_a_while_and_running_ones_are_not(
    make_jobs: Callable[..., Jobs], tmp_path: Path
) -> None:
    jobs = make_jobs(keep_seconds=0.05)
    done_id = jobs.start(job_work.return_value, "secret")
    wait_until(lambda: (job := jobs.view(done_id)) is None or job.is_final)
    running_id = started(jobs, tmp_path)
    time.sleep(0.1)
    assert jobs.view(done_id) is None
    assert jobs.view(running_id) is not None
    (tmp_path / "go").touch()


def test_forgetting_drops_request_and_result(shared: Jobs) -> None:
    job_id = shared.start(job_work.return_value, "result")
    final(shared, job_id)
    shared.forget(job_id)
    assert shared.view(job_id) is None
    shared.forget("no such job")
    shared.stop("no such job")


def test_ids_cannot_be_guessed(make_jobs: Callable[..., Jobs], tmp_path: Path) -> None:
    jobs = make_jobs(max_waiting=100, max_waiting_each=100)
    ids = {jobs.start(job_work.wait_at_gate, tmp_path) for _ in range(50)}
    assert len(ids) == 50 and min(map(len, ids)) >= 22  # 128 bits in base 64


@pytest.mark.slow
def test_a_process_is_prepared_once(make_jobs: Callable[..., Jobs]) -> None:
    jobs = make_jobs(prepare=job_work.count_preparations)
    process = final(jobs, jobs.start(job_work.pid)).result
    assert final(jobs, jobs.start(job_work.preparations)).result == [process]


GROWN = """
import job_work
from leakscope.core.jobs import Jobs
held = b"x" * 2_700_000_000
del held
jobs = Jobs()
found = [jobs.wait(jobs.start(job_work.pid), 60).result for _ in range(2)]
assert found[0] == found[1], found
"""


@pytest.mark.slow
def test_a_server_that_has_grown_keeps_its_process_warm_too(tmp_path: Path) -> None:
    """Linux hands a program the peak of whoever started it: that is not the program's own."""
    here = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": here}
    with (
        (tmp_path / "log").open("w") as log,
        processes.running_process(
            [sys.executable, "-c", GROWN], output=log, env=environment
        ) as server,
    ):
        status = server.wait(LONG)
    assert status == 0, (tmp_path / "log").read_text()


@pytest.mark.slow
def test_work_that_nobody_follows_any_more_is_stopped(
    make_jobs: Callable[..., Jobs], tmp_path: Path
) -> None:
    jobs = make_jobs(patience=Patience(abandon_seconds=1.0))
    job_id = started(jobs, tmp_path)
    assert final(jobs, job_id).state is JobState.STOPPED, "waiting for it is no look at it"
    assert not is_running(int((tmp_path / "runs").read_text()))


@pytest.mark.slow
def test_no_work_runs_for_ever(make_jobs: Callable[..., Jobs], tmp_path: Path) -> None:
    jobs = make_jobs(patience=Patience(longest_seconds=1.0))
    # A full machine may not even begin it.
    alone = final(jobs, jobs.start(job_work.wait_at_gate, tmp_path))
    assert alone.state is JobState.FAILED and "the limit of one job, so" in alone.error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "state", "told"),
    [
        ("crowded_seconds", JobState.STOPPED, ""),
        ("crowded_longest_seconds", JobState.FAILED, "the limit of one job while others wait"),
        ("silent_seconds", JobState.FAILED, "showed no progress for 0 s"),
    ],
    ids=["nobody looks at it", "it takes long", "it is silent"],
)
def test_work_gives_way_sooner_where_another_waits(
    make_jobs: Callable[..., Jobs], tmp_path: Path, limit: str, state: JobState, told: str
) -> None:
    jobs = make_jobs(patience=Patience(**{limit: 0.2}))
    first = started(jobs, tmp_path)
    time.sleep(0.6)
    assert seen(jobs, first).state is JobState.RUNNING, "nobody waits"
    second = jobs.start(job_work.return_value, "its turn")
    assert final(jobs, second).result == "its turn"
    ended = seen(jobs, first)
    assert ended.state is state and told in ended.error
