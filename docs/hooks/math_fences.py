"""Turns ```math fences into MathML while the pages are built (see docs/decisions/0003)."""

import re
from xml.etree import ElementTree

from latex2mathml.converter import convert
from pymdownx.superfences import SuperFencesException

GREEK = re.compile("<mi>(&#x003[BC][0-9A-F];)</mi>")


def math_fence(source, language, css_class, options, md, **kwargs):
    try:
        mathml = convert(source, display="block")
        # The converter passes on what it does not know, often as broken XML.
        ElementTree.fromstring(mathml)
    except Exception as error:
        # Of all exceptions only this one stops the build; the others would show the source.
        raise SuperFencesException(f"cannot convert this formula: {source}") from error
    # Browsers write <mi>τ</mi> with a letter of its own, U+1D70F, which few fonts have.
    mathml = re.sub(GREEK, r'<mi mathvariant="normal" class="greek">\1</mi>', mathml)
    return f'<div class="{css_class}">{mathml}</div>'
