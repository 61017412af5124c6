"""What is to be run: frozen models of tasks, arms, subjects and cells, and the loader that proves them."""
