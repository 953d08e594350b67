"""`goodfence serve`: a recommender service that answers from a released model, with its pages, jobs and promise."""
