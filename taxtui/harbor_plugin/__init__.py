"""A plug-in of Harbor, ``harbor run … --plugin taxtui``: it times every command of a job and writes one recording."""
