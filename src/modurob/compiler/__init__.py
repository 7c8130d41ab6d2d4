"""The model compiler: trace the recursions once, emit them as machine code.

It knows no physics: `equations` are run with traced scalars, and what they do is recorded.
"""
