"""Peak memory of a process."""
import subprocess
import sys

# A process counts its parent's pages from before exec, so a small one starts it and reads its peak.
PROBE = ("import os, sys\npid = os.fork()\nif pid == 0:\n    os.execv(sys.argv[1], sys.argv[1:])\n"
         "_, status, usage = os.wait4(pid, 0)\nprint(usage.ru_maxrss, file=sys.stderr)\n"
         "sys.exit(os.waitstatus_to_exitcode(status))")


def peak_memory(command, stdout=subprocess.DEVNULL):
    """Bytes that `command` had resident at most, mapped files included; it must succeed."""
    done = subprocess.run([sys.executable, "-S", "-c", PROBE, *map(str, command)], stdout=stdout, stderr=subprocess.PIPE,
                          text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.splitlines()[-1]) * 1024
