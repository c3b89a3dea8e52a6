"""
Base class for tests of whole programs: a work folder with a generated model, and functions that run the
program. The command line is TEST PROGRAM MAKE_MODEL [arguments of the test]. unittest gets the arguments
that remain; a test with arguments of its own removes them from sys.argv first.
"""
import fcntl
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

PROGRAM, MAKE_MODEL = map(os.path.abspath, sys.argv[1:3])
NAME = os.path.basename(PROGRAM)
SHORT_INPUT = 4096  # bytes that fit into any pipe


def preload(name):
    """The library NAME for LD_PRELOAD. It is absent in a build with sanitizers; then the test is skipped."""
    path = os.path.join(os.path.dirname(MAKE_MODEL), name + '.so')
    if not os.path.exists(path):
        raise unittest.SkipTest(f'there is no {path}')
    return path


def run(words, stdin=b'', **more):
    """
    Run a program with these bytes as standard input. A short input is in the pipe before the program starts. With
    --prompt, bitnet-chat waits only two seconds for the first byte, and on a busy machine this process may be later.
    """
    if len(stdin) > SHORT_INPUT:
        return subprocess.run(words, input=stdin, check=False, **more)
    read, write = os.pipe()
    os.write(write, stdin)
    os.close(write)
    try:
        return subprocess.run(words, stdin=read, check=False, **more)
    finally:
        os.close(read)


# nohup and background jobs of a shell ignore these signals, and child processes inherit that.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)


class ProgramCase(unittest.TestCase):
    """A test class has one work folder. `model` is the path of a tiny model with a byte vocabulary."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cls.make('tiny.gguf')

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def make(cls, name, *args):
        """Generate a model with these options of make_model. Returns its path."""
        path = cls.path(name)
        subprocess.run([MAKE_MODEL, *args, path], check=True, timeout=300)
        return path

    @classmethod
    def write(cls, name, data):
        path = cls.path(name)
        with open(path, 'wb') as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return path

    def reports_sigbus(self, fifo, *words, env=None):
        """Run the program and send it SIGBUS when it opens the FIFO that its words name. It must print the message
        about a model file that was cut, and end by the signal."""
        os.mkfifo(fifo)
        with subprocess.Popen([PROGRAM, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
            with open(fifo, 'wb'):  # waits until the program opens it
                process.send_signal(signal.SIGBUS)
                errors = process.communicate(timeout=60)[1]
        self.assertEqual((process.returncode, errors.decode()), (
            -signal.SIGBUS, f'{NAME}: the model file was cut short, or its disk failed, while it was in use\n'))

    @staticmethod
    def run_program(*args, stdin=b'', stdout=subprocess.PIPE):
        return run([PROGRAM, *args], stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=300)

    def succeeds(self, *args, stdin=b''):
        """Run the program. It must exit with 0 and print nothing on standard error. Returns its output."""
        done = self.run_program(*args, stdin=stdin)
        self.assertEqual((done.returncode, done.stderr), (0, b''), args)
        return done.stdout

    def fails(self, code, *args, stdin=b''):
        """Run the program. It must exit with `code` and print one error line. Returns that line."""
        done = self.run_program(*args, stdin=stdin)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, (args, text))
        self.assertEqual(text.count('\n'), 1, (args, text))
        self.assertTrue(text.startswith(NAME + ': '), (args, text))
        return text

    @staticmethod
    def progress_of(*args, stdin=b'', env=None):
        """Run the program with a terminal of 80 columns as standard error. It must exit with 0. Returns what it wrote
        there and what remains of it on the screen, where only carriage returns move the cursor, and its output."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
        with subprocess.Popen([PROGRAM, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=slave,
                              env=env) as process:
            os.close(slave)
            output = []
            thread = threading.Thread(target=lambda: output.append(process.communicate(stdin, timeout=300)[0]))
            thread.start()
            seen = b''
            while True:
                try:
                    seen += os.read(master, 4096)
                except OSError:  # the program has closed the terminal
                    break
            thread.join()
        os.close(master)
        if process.returncode != 0:
            raise AssertionError(f'{args}: exit status {process.returncode}, {seen!r}')
        left = []
        for line in seen.split(b'\r\n'):
            cells = b''
            for part in line.split(b'\r'):
                cells = part + cells[len(part):]
            left.append(cells.rstrip())
        return seen, b'\n'.join(left), output[0]

    def models_that_do_not_load(self):
        """Paths that are not valid model files, each for another reason."""
        with open(self.model, 'rb') as file:
            whole = file.read()
        yield self.path('missing.gguf')
        yield self.folder.name
        yield self.write('empty.gguf', b'')
        yield self.write('text.gguf', 'hello, I am no model\n' * 100)
        yield self.write('magic.gguf', b'GGUF')
        yield self.write('header.gguf', whole[:24])
        yield self.write('half.gguf', whole[:len(whole) // 2])
        yield self.write('short.gguf', whole[:-1])


def main():
    unittest.main(argv=[NAME, *sys.argv[3:]])
