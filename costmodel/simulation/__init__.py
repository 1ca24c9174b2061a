"""Makespans of attempts on workers, simulated or in closed form.

docs/simulation.md has the rules. ``rules`` has the inputs, ``attempts`` the attempts by cause. ``random_streams``
draws the numbers that all counterfactuals share. ``state`` places sandboxes and pulls images, ``simulator`` moves from
event to event. ``step_sampling`` selects steps, ``run`` repeats a run. ``makespan`` has closed forms.
"""
