"""Sandboxes: the protocols of a substrate, the kit for their authors, and a conformance suite.

An author of a ``SimpleSubstrate`` imports ``taxtui.sandboxes.simple`` alone; ``taxtui setup --new NAME`` writes a
complete example. The conformance suite is ``taxtui.sandboxes.conformance``, a substrate for your own tests
``taxtui.sandboxes.fake``.
"""
