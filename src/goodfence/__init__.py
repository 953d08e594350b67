"""goodfence: measure how much user data a recommender leaks, and recommend without leaking it.

    import goodfence as gf

Every public name is an attribute of this module; the published systems and the reproduction of the paper are in
`gf.papers`. `__init__.pyi` lists the names. They are imported on first use, so that `import goodfence` is fast.
"""

from goodfence.registry import lazy_names

__version__ = "0.3.0"
__getattr__, __dir__, __all__ = lazy_names(__name__)
