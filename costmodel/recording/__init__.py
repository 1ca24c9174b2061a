"""Recordings: from the bytes of a file to trials with their times.

Contains frames (``framing``), events (``events``) and the rules that events keep (``validation``), the reader
(``reader``), trials as columns (``trial``), the division of a trial's time (``breakdown``, ``metrics``), tables of
trials (``table``), the health of the measuring process (``runner_health``), completed trials per second
(``throughput``), TOML files of published figures (``published``), and the function that opens either kind of file
(``load``).
"""
