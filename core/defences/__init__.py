"""What can be done against leaking vectors, and what it costs.

`registry` lists the defences; `protected` is an encoder under one of them, and `stored` keeps on
disk what one has learned. Reading order: `vectors` (defences that change the vector alone),
`metric_dp` (the mechanisms of d_χ-privacy, their noise and what they promise), `deniability` (how
often a token comes back, at every η, and which η to recommend).
"""
