"""The paper's evaluation, reproduced: seven figures as data, sixteen claims with a verdict each."""
