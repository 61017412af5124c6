"""One road to the model, and the meter on it."""
