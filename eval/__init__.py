"""Answers graded, counted, compared and shown."""
