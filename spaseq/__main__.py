"""`python -m spaseq`: the command line without the installed script."""

import sys

from spaseq.cli import main

sys.exit(main())
