"""What the paper claims, in its own terms, and how each claim is judged."""

from __future__ import annotations

TEXTS: dict[int, str] = {
    1: "Without an attack PPNS predicts better than nPNS and PNCF, in all three settings.",
    2: "The MAE of PPNS grows with beta, without an attack and under attack.",
    3: "With beta = 1 PPNS equals kNN.",
    4: "Under attack, at the same beta, PPNS has the lowest MAE of the three private methods.",
    5: "Under attack the MAE of kNN is zero from m = 8 on.",
    6: "Under attack a larger k lowers the MAE of PPNS.",
    7: "Under attack a larger epsilon lowers the MAE of PNCF and PPNS.",
    8: "Under attack a larger m lowers the MAE of every method.",
    9: "None of the three private methods gives the target's ratings away.",
    10: "The allocation (k-1, 0, ..., 0, 1) maximises alpha [FINAL].",
    11: "Manly's mean [approx] is a good approximation, and exact for equal weights.",
    12: 'Partition 1 is the fakes and the target, with similarity "absolutely one" [OBJ].',
    13: "In the second half of a candidate list most similarities are zero.",
    14: "To be the only real user among the neighbours the attacker needs beta * k fakes.",
}

_COMMON = "on the cells that all three private methods predict"
RULES: dict[int, str] = {
    1: f"PPNS minus each other private method, mean over beta > 1, {_COMMON}; below zero in every setting.",
    2: "The rise of the straight line through PPNS' MAE over beta; above zero in every figure, and under attack "
    "also over beta > 1 alone.",
    3: "Every target's predictions at beta = 1 under every seed; one difference refutes it.",
    4: f"PPNS minus each other private method, mean over beta > 1, {_COMMON}; below zero.",
    5: "kNN is not random: one prediction that errs by more than 1e-6 at m >= 8 refutes it.",
    6: "The rise of the straight line through PPNS' MAE over k; below zero.",
    7: "The rise of the straight line through each MAE over log epsilon; below zero for both.",
    8: "The rise of the straight line through each MAE over log m; below zero for all four.",
    9: "Advantage (recovery minus recovery in a world without the target) minus one hundredth, mean over m >= 8; "
    "below zero for all three.",
    10: "All feasible allocations are enumerated on real and on random lists; one better allocation refutes it. "
    "It is also a theorem: a draw moved to partition 1 replaces a candidate by one at least as similar.",
    11: "The largest error of an inclusion probability on the lists and settings of the figures; good means at most "
    "0.01, exact at most 1e-9.",
    12: "The lists of asking fakes (k = 50, m = 8 random items); one target below similarity 1, or outside "
    "partition 1, refutes it.",
    13: "The share of zeros in the second half of the lists, in the three settings of the figures; above a half.",
    14: "The exact probability that the target is the only real neighbour of the asking fake, for several numbers of "
    "fakes; a positive one below beta * k refutes it.",
}
