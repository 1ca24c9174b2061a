"""One discrete-event simulation for every combination of policies; its rules are in docs/simulation.md.

``rules`` says what is asked, ``tries`` where attempts come from, ``events`` moves from one event to the next,
``timeline`` lets rollouts and trainer wait for each other, ``estimate`` repeats and enlarges, and says how far off
it may be. What is drawn and what is decided are apart, so that another source of attempts needs no other engine.
"""
