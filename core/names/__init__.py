"""Names of people in texts: finding, substituting, recovering and probing for them.

Reading order: person (what a name is), matching (a name in a text), discovery (names found in
texts), sentences (typed ones), substitution (Corò 2022, §5.2.3), probing (candidates known),
augmentation (an attacker who trains for names).
"""
