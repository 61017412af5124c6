"""A promoted candidate written into a repository: all of it or nothing, and no edit of anyone else lost."""
