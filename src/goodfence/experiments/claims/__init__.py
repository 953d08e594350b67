"""The fourteen claims of the paper, each with a verdict and the numbers behind it."""
