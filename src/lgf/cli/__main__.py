"""`python -m lgf.cli`, the command line without its script."""

import sys

from lgf.cli import main

sys.exit(main())
