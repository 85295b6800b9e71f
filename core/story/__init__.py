"""Stories: views of the pages in an order, annotated, to be presented, and as files to take along.

Read `format` first: what a story is; `views` then tells one from the rows that ship, `deck` makes
slides of it, and `html`, `pdf` and `pptx` the files.
"""
