"""Makes the Python client of this checkout importable, ahead of an installed one."""

import pathlib
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
CLIENT_FOLDER = REPOSITORY / "clients" / "python"

if str(CLIENT_FOLDER) not in sys.path:
    sys.path.insert(0, str(CLIENT_FOLDER))
