"""What similar means, and in which order a candidate list stands."""
