"""Reading and counting with several processes and in little memory.

Contains a pool of processes (``processes``), forks that share work (``dealing``), a pause of the garbage collector
(``collecting``) and a temporary file for packed trials (``scratch``).
"""
