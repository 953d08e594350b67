"""Audits that try to break a promise, and the frontier of leak against error."""
