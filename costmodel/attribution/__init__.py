"""Attribution: the same simulated run without each cause of sandbox time.

Contains the replications of all counterfactuals (``replications``), the share of each cause with its interval
(``shares``), the difference of two substrates under the same random streams (``paired_comparison``), the assumed inputs
(``assumptions``), and the row with its attribution (``row``).
"""
