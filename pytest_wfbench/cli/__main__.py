"""``python -m pytest_wfbench.cli``."""

import sys

from pytest_wfbench.cli import main

sys.exit(main())
