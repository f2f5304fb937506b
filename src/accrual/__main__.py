"""Run the `accrual` command as ``python -m accrual``."""

import sys

from accrual.cli import main

sys.exit(main())
