"""Turns ```math fences into MathML while the pages are built (see docs/decisions/0003)."""

from xml.etree import ElementTree

from latex2mathml.converter import convert
from pymdownx.superfences import SuperFencesException


def math_fence(source, language, css_class, options, md, **kwargs):
    try:
        mathml = convert(source, display="block")
        # The converter passes on what it does not know, often as broken XML.
        ElementTree.fromstring(mathml)
    except Exception as error:
        # Of all exceptions only this one stops the build; the others would show the source.
        raise SuperFencesException(f"cannot convert this formula: {source}") from error
    return f'<div class="{css_class}">{mathml}</div>'
