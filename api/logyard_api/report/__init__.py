"""The report: a picture of a log as one page that needs nothing but a browser."""
