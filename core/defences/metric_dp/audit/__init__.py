"""Does a mechanism do what it says? Tests of its noise where that is seen, of its outputs else.

Reading order: `probe` (an encoder whose output gives away what a mechanism did), `noise_law` and
`outputs` (the tests), `mechanism` (all of them on one mechanism, corrected for their number),
`flaws` (mechanisms broken on purpose), `pairs` (the promise itself, bounded for two inputs).
Mechanisms that choose a token have tests of their own: `choice_laws` (what they promise to draw,
counted out), `choices` (the tests), `flawed_choices`; `named` audits any mechanism by its name.
"""
