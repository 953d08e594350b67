"""The paper's reproduction and the published systems it names: `gf.papers.reproduce`, `gf.papers.BlurMe` and others.

The rest of goodfence never imports this package; the registry finds its classes by name. `__init__.pyi` lists them.
"""

from goodfence.registry import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
