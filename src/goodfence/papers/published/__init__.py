"""Systems that the paper names, and their successors: one a file, each with the status of its own claim."""
