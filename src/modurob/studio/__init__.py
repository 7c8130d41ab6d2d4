"""The studio: organisms built, understood and moved in the browser.

What can be tested without a browser has no user interface inside: `session`, `project`, `edits`,
`runs`, `exports`. `panels` and `web` show it.
"""
