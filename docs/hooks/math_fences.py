"""Turns ```math fences into MathML while the pages are built (see docs/decisions/0003)."""

from xml.etree import ElementTree

from latex2mathml.converter import convert


def math_fence(source, language, css_class, options, md, **kwargs):
    mathml = convert(source, display="block")
    # The converter passes commands through that it does not know, often as broken XML.
    # Parsing stops the build there rather than showing a reader half a formula.
    ElementTree.fromstring(mathml)
    return f'<div class="{css_class}">{mathml}</div>'


def on_config(config):
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [
        *fences.get("custom_fences", []),
        {"name": "math", "class": "math", "format": math_fence},
    ]
    return config
