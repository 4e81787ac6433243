"""`python -m etcmodel`: the command `etcmodel`, if it is not on the path."""

from etcmodel.cli import main

if __name__ == "__main__":
    main.main()
