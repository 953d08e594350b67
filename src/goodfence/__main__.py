"""`python -m goodfence` is the command line."""

from __future__ import annotations

from goodfence.cli import main

if __name__ == "__main__":
    main()
