"""Plotly figures of results, one file per subject; they draw and never compute."""
