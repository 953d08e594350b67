"""All pairs of rows by cosine, a block of rows against a block of rows at a time.

layout      the ratings as the tiles read them: popular items dense, the rest as lists
strips      sums of dense columns in vector registers
dots        the dot products of one tile
buffers     the best candidates so far of each row, and the threshold they set
offers      what a tile has to offer to the buffers of its rows and of its columns
tile        one tile: dots, then offers
thresholds  a first threshold for each row, from a sample
finish      from buffers to sorted lists
merging     lists put together from what several tiles found
"""
