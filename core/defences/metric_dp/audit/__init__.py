"""Statistical audits of mechanisms: of their noise if it is visible, otherwise of their outputs.

Reading order: `probe` (an encoder whose output shows what a mechanism did), `noise_law` and
`outputs` (the tests), `mechanism` (all of them on one mechanism, corrected for their number),
`flaws` (deliberately flawed mechanisms), `pairs` (the guarantee itself, bounded for two inputs).
Mechanisms that sample a token have separate tests: `choice_laws` (their exact output
probabilities) and `choices` (the tests). `by_name` audits any mechanism by its name.
"""
