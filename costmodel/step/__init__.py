"""The step model: what a run in training steps takes, and what each cause of the sandbox's adds to it.

The rules are in docs/step-model.md. ``trials`` brings recorded attempts into parts that can be taken away one by one,
``chance`` draws the random world that all counterfactuals share, ``nodes`` places sandboxes and pulls images,
``events`` moves from one event to the next, ``windows`` chooses which steps of a run are simulated and what they stand
for, ``attribution`` repeats that without each cause and says how sure it is.
"""
