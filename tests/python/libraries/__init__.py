"""Trains small models of well-known libraries side by side with eager: see docs/libraries.md."""
