"""The gate: a pure function of a results directory that says whether a candidate replaces its incumbent."""
