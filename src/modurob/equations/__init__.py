"""The recursions of the documents, each written once, over any scalar type.

Functions take flat arrays and return arrays; they know no modules, organisms or models. Elements
may be floats (with any leading batch shape), SymPy expressions or traced scalars.
"""
