"""The audit: holds any log against the scheduler's promises, by code that shares nothing with the
scheduler.
"""
