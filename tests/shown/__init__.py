"""What README.md and docs/ show, made again from where it comes from.

`python -m tests.shown` (or `./scripts/documented`) writes every shown output and number again, `--check` compares.
Three things are shown: what commands print (`commands`), what was measured or computed (`sources`, between
markers), and the index of errors (`errors_page`).
"""
