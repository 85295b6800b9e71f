"""Defences against leaking vectors, and what each one costs.

`registry` lists the defences; `protected` is an encoder behind a defence, and `stored` saves
trained defences. Reading order: `vectors` (defences that change the vector alone),
`metric_dp` (the mechanisms of d_χ-privacy, their noise and their guarantees), `deniability` (how
often a token stays unchanged at each η, and which η to recommend).
"""
