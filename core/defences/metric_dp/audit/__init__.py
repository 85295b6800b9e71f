"""Statistical audits of mechanisms: of their noise if it is visible, otherwise of their outputs.

Reading order: `noise_law` (tests of noise and of released tokens), `pairs` (the guarantee itself,
bounded for two inputs), `mechanism` (a probe encoder and all tests on one mechanism, corrected for
their number), `flaws` (deliberately flawed mechanisms). Mechanisms that sample a token have
separate tests: `choice_laws` (their exact output probabilities) and `choices` (the tests).
`choices.audit_named` audits any mechanism by its name.
"""
