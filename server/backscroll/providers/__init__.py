"""Neutral messages to and from a vendor's wire."""
