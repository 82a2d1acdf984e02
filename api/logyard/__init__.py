"""Logyard: an event-sourced workflow engine and scheduler for HPC and AI clusters."""

__version__ = "0.1.0"
