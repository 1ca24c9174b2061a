"""Makespans of attempts on workers, simulated or in closed form.

docs/simulation.md has the rules of the simulator. ``rules`` has its inputs, ``attempts`` the attempts divided by cause
with retries and suspended time. ``random_streams`` draws the numbers that all counterfactuals share. ``state`` places
sandboxes and pulls images, and ``simulator`` moves from event to event. ``step_sampling`` selects the simulated steps,
and ``run`` repeats a run until its error is small. ``makespan`` has closed forms.
"""
