"""Lets the examples run from a checkout: makes clients/python importable where no tensord package is installed."""

import importlib.util
import pathlib
import sys

if importlib.util.find_spec("tensord") is None:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "python"))
