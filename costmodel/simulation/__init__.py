"""Makespans of attempts on workers, simulated or in closed form.

The simulator has its rules in docs/simulation.md: ``rules`` has its inputs, ``attempts`` divides recorded attempts
into parts that can be removed one by one, ``random_streams`` draws the numbers that all counterfactuals share,
``cluster`` places sandboxes and pulls images, ``state`` and ``simulator`` move from one event to the next, ``timeline``
lets rollouts and the trainer wait for each other, ``step_sampling`` selects the simulated steps, ``run`` repeats a run
until its error is small. ``makespan`` has closed forms, ``retries`` the law of a trajectory with failed attempts.
"""
