"""What is guaranteed about privacy: the claim, its cost, and the noise that pays for it."""
