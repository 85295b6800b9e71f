"""Stories: annotated sequences of views, to present or to export as a report.

Read `format` first, the data model. `leakscope.core.findings.registry` then builds views from
shipped rows, `deck` builds the slides, and `html` and `pptx` write the files.
"""
