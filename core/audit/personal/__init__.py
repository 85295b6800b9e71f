"""Personal data in texts: detected by rules, then tested on the texts' vectors.

Reading order: kinds (what is looked for), detection (where it is), candidates (what else could be
there), confirmation (which candidate the vector fits), confidence (how certain that is), report.
"""
