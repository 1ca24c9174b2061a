"""A page to send: what a recording tells as one HTML file, its figures alone, and a site over many recordings.

jinja2 and matplotlib (the extra ``report``) are imported here only, and only where a page is asked for.
"""
