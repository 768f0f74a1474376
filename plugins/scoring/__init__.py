"""ScoreText: how probable given translations are."""
