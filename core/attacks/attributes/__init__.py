"""Attribute inference: recover what a vector reveals about its text, such as its author (SR20, §4).

Reading order: examples, draw, attack, linear (with program), words, textcnn, answers, parts;
`registry` lists the attacks, `sources` the corpora that need no file.
"""
