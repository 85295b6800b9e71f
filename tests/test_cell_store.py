from __future__ import annotations

from typing import Any

import pytest
import streamlit as st

from leakscope.dashboard.ui.session_results import SessionCache


def test_the_oldest_gives_way_and_sessions_keep_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: SessionCache[str, int] = SessionCache("kept", 2)
    sessions: list[dict[str, Any]] = [{}, {}]
    monkeypatch.setattr(st, "session_state", sessions[0])
    assert [kept.add(key, value) for value, key in enumerate("abc")] == [0, 1, 2]
    assert [kept.get(key) for key in "abc"] == [None, 1, 2]
    monkeypatch.setattr(st, "session_state", sessions[1])
    assert kept.get("c") is None
