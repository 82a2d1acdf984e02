"""Logyard: an event-sourced workflow engine and scheduler for HPC and AI clusters."""

from logyard_api.release import VERSION as __version__

__all__ = ["__version__"]
