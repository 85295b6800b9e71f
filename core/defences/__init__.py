"""What can be done against leaking vectors, and what it costs.

Reading order: `noise` (the noise of d_χ-privacy), `candidates` (which tokens may be returned),
`metric_dp` (the mechanisms), `deniability` (how often a token comes back, at every η),
`eta_choice` (which η to recommend), `audit` (does a mechanism keep its promise?), `vector_noise`
(defences that change the vector alone). `DEFENCES` in `registry` lists them.
"""
