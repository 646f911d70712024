"""Locked memory: the limit that the process really has, and a lock that really needs it."""

import mmap

# Linux's value; Python's mmap module does not name it. A mapping with it is refused (EAGAIN) when
# RLIMIT_MEMLOCK does not cover it and the process lacks CAP_IPC_LOCK, as the driver's own lock is.
MAP_LOCKED = 0x2000
MIB = 1 << 20


def locked_memory_limits():
    """(soft, hard) of RLIMIT_MEMLOCK as the kernel prints them: a number of bytes or `unlimited`."""
    with open("/proc/self/limits", encoding="ascii") as limits:
        for line in limits:
            if line.startswith("Max locked memory"):
                soft, hard = line.split()[3:5]
                return soft, hard
    raise RuntimeError("/proc/self/limits has no line 'Max locked memory'")


def pin(mib):
    """Locks `mib` MiB for the life of the returned mapping; OSError when the kernel refuses."""
    return mmap.mmap(-1, mib * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_LOCKED)
