"""Personal data in texts: detected by rules, then tested on the texts' vectors.

Reading order: kinds (what is looked for, and what else could be there), detection (where it is),
confirmation (which candidate the vector fits), confidence (how certain that is), report.
"""
