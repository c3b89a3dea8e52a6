"""
When a program at a terminal has dealt with all of its keys, on a machine of any speed.

No text on a screen shows that nothing more will come. But a program that has read all bytes of its terminal and sleeps
is waiting for something else. A process that waits for a processor does not sleep. Before its next repaint it may
sleep for 40 ms, and for 300 ms after a change of the window's size, so it must stay asleep for longer than that.
"""
import fcntl
import os
import select
import struct
import termios
import time

CPU_TICKS = os.sysconf('SC_CLK_TCK')  # in a second
QUIET_SECONDS = 0.1
QUIET_AFTER_RESIZE_SECONDS = 0.4


def stat_of(pid):
    """The fields of /proc/PID/stat from the state of the main thread on."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        return file.read().rsplit(') ', 1)[1].split()


def cpu_ticks(pid):
    """The processor time of the process, an integer: 1 % of a few seconds is a few ticks."""
    return sum(map(int, stat_of(pid)[11:13]))


def children_of(pid):
    """The processes that the main thread of this process has started."""
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [int(child) for child in file.read().split()]


def sleeps(pid):
    """Whether the main thread sleeps, or the process has ended."""
    try:
        return stat_of(pid)[0] in 'SZ'
    except FileNotFoundError:
        return True


def catches(pid, number):
    """Whether the program handles this signal. Before, the signal would end it."""
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        caught = int(next(line for line in file if line.startswith('SigCgt:')).split()[1], 16)
    return caught >> (number - 1) & 1


def has_no_input(terminal):
    """Whether the program has read all bytes of this descriptor of its terminal."""
    select.select([terminal], [], [], 0)  # the kernel then passes on what was sent before; the ioctl does not wait
    return struct.unpack('i', fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)))[0] == 0


def wait_until_quiet(is_quiet, what, seconds=QUIET_SECONDS):
    """Wait until is_quiet(), which takes about 10 ms, is true for this time. what() is the message of a failure."""
    deadline = time.monotonic() + 60
    since = None
    while since is None or time.monotonic() - since < seconds:
        if time.monotonic() > deadline:
            raise AssertionError(f'the program does not become idle: {what()}')
        if not is_quiet():
            since = None
        elif since is None:
            since = time.monotonic()
