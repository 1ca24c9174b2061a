"""Pages to send: a recording or a decision as one HTML file, figures as files, and a site of many recordings.

Only this package imports jinja2 and matplotlib (the extra ``report``).
"""
