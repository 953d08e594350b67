"""The attack laboratory: what a recommender gives away to fake accounts."""
