"""Recordings: from the bytes of a file to trials with their times.

Contains frames (``framing``), events (``events``) and the rules that events keep (``validation``), the reader
(``reader``), a trial with its durations (``trial``), the division of its time (``breakdown``), the cause of its end
(``causes``), tables of trials (``table``), the health of the measuring process (``runner_health``), completed trials
per second (``throughput``), and TOML files of published figures (``published``).
"""
