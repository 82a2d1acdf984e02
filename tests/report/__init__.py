"""Tests of the picture of a log and of the page that shows it."""
