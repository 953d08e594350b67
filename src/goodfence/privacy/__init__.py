"""What a mechanism promises about privacy, and what that promise is worth."""
