"""Verification of an organism's equations: identities, conservation laws, other engines."""

from modurob.verification.check import Check, VerificationReport
from modurob.verification.verify import CHECKS, verify

__all__ = ["CHECKS", "Check", "VerificationReport", "verify"]
