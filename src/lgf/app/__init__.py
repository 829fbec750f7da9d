"""The page in the browser: a local server, its programming interface, and the files of the page."""
