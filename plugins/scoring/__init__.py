"""ScoreText: the probabilities of given translations."""
