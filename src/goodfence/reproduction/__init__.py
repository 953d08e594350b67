"""The paper's evaluation, reproduced: seven figures as data, fourteen claims with a verdict each."""
