"""Names of people in texts: finding, substituting, recovering and probing for them.

Reading order: person (what a name is, and where it is in a text), discovery (names found in texts),
sentences (typed ones), substitution (Corò 2022, §5.2.3), probing (candidates known), experiment
(all of these for one page), augmentation (an attacker who trains for names).
"""
