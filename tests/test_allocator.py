"""Freed memory that stays with the process."""

import json
import subprocess
import sys

import pytest

FAULTS = """
import json, resource, sys
import numpy as np
from fbam.experiments.allocator import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(16 << 20, np.uint8)
        np.ones(64 << 20, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

own = faults()
keep_freed_memory()
faults()
print(json.dumps([own, faults()]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_a_process_that_keeps_what_it_frees_takes_no_pages_anew():
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    own, kept = json.loads(done.stdout)
    assert kept < own / 10
