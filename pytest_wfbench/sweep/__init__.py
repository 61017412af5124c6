"""One pytest invocation over cells: its plan, proven before anything is spent, and its life from begin to finish."""
