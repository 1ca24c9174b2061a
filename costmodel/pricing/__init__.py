"""Price sheets: the price of a sandbox.

Contains the sheets, and how billed time and dollars follow from a sandbox's life (``sheet``), the sizes that a provider
sells (``instance_sizes``), and the shipped sheets (``data``).
"""
