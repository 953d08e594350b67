"""All pairs of rows by cosine, a block of rows against a block of rows at a time.

layout      the ratings as the tiles read them: popular items dense, the rest as lists
strips      sums of dense columns in vector registers
buffers     the best candidates so far of each row, the threshold they set, and what a tile offers to them
tile        one tile: dot products, then offers; and a first threshold for each row, from a sample
lists       from buffers to sorted lists, and lists put together from what several tiles found
"""
