"""Does a mechanism do what it says? Tests of its noise where that is seen, of its outputs else.

Reading order: `probe` (an encoder whose output gives away what a mechanism did), `noise_law` and
`outputs` (the tests), `mechanism` (all of them on one mechanism, corrected for their number),
`flaws` (mechanisms broken on purpose), `pairs` (the promise itself, bounded for two inputs).
"""
