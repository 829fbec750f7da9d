"""`python -m lgf`: the command line where the script `lgf` is not on the path."""

import sys

from lgf.cli import main

if __name__ == "__main__":
    sys.exit(main())
