"""Run the `accrual` command as ``python -m accrual``."""

from __future__ import annotations

import sys

from accrual.cli import main

sys.exit(main())
