"""Verification of an organism's equations: identities, conservation laws, other engines."""

from modurob.verification.check import Check, Report
from modurob.verification.verify import CHECKS, verify

__all__ = ["CHECKS", "Check", "Report", "verify"]
