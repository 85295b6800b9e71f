"""Attribute inference: what a vector says about its text, such as who wrote it (SR20, §4).

Reading order: examples, draw, attack, linear (with program and sparse_program), words, textcnn,
majority, answers, parts; `registry` lists the attacks, `sources` what needs no file.
"""
