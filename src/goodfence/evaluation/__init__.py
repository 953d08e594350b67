"""How good the predictions are: hold-out scores, and the paper's protocol."""
