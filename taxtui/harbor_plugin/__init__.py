"""Harbor plug-in, ``harbor run … --plugin taxtui``: times every command of a job and writes a recording."""
