"""Where baselines are filed, and which of them a sweep is compared with."""
