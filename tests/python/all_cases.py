"""Every function that is traced and compared with NumPy."""

import everyday_cases
import family_cases
import function_cases
import indexing_cases

CASES = [*function_cases.CASES, *family_cases.CASES, *indexing_cases.CASES, *everyday_cases.CASES]
