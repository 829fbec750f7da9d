"""The peak memory of this process."""

import resource
from pathlib import Path


def peak_memory_mb() -> int:
    """The most memory that was resident since the program began, in MB.

    The kernel's ru_maxrss is inherited from the process that started this one, so it is the second choice.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
