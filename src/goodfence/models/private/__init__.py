"""The parts of the private models: what is released, one quantity a file, and what is made of it afterwards."""
