"""What README.md, docs/ and REPRODUCTION.md show, written from where it comes from; no part of the library.

`python -m documents` (or `./scripts/documented`) writes every shown output and number again, `--check` compares.
Four things are shown: what commands print (`commands`), what was measured or computed (`sources`, between markers),
the index of errors (`errors_page`), and the picture of the layers (`architecture`). `--reproduction` first runs the
paper's whole evaluation and writes REPRODUCTION.md (`reproduction`).
"""
