"""Formulas as MathML, which browsers show by themselves: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def _formula(translator: Any, node: nodes.Element, as_block: bool) -> str:
    text = node.astext()
    if as_block and "\\\\" in text and "\\begin" not in text:
        text = f"\\begin{{aligned}}{text}\\end{{aligned}}"
    try:
        return tex2mathml(text, as_block=as_block)
    except MathError as error:
        raise ExtensionError(f"{translator.builder.current_docname}: {error} in {text}") from error


def _inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(_formula(translator, node, as_block=False))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="formula">{_formula(translator, node, True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer; ``html_math_renderer`` chooses it."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
