"""Where speed is: pure compiled functions, arrays in and arrays out, noise as an argument."""
