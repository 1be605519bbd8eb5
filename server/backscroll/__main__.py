"""`python -m backscroll` is the command `backscroll`."""

from backscroll.cli import main

main()
