"""Audits that try to break a guarantee, and the frontier of leak against error."""
