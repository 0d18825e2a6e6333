"""A program on a terminal of its own, with as much of a terminal as tensordctl uses."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

PATIENCE_SECONDS = 120.0
ESCAPE = re.compile("\x1b\\[([0-9;]*)([A-Za-z])")


class Screen:
    """The cells of a terminal. AssertionError where it is told what it does not know."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.row, self.column = 0, 0
        self.scrolled = 0  # lines that left the screen
        self.wrapped = 0  # lines that were too long
        self._cells = [[" "] * columns for _ in range(rows)]
        self._unread = ""

    def lines(self):
        return ["".join(row).rstrip() for row in self._cells]

    def feed(self, text):
        text, self._unread = self._unread + text, ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self._put(text[at])
                at += 1
                continue
            escape = ESCAPE.match(text, at)
            if escape is None:
                self._unread = text[at:]
                assert len(self._unread) < 16, f"an unknown sequence: {self._unread!r}"
                return
            self._obey(*escape.groups())
            at = escape.end()

    def _put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._go_down()
        else:
            assert character.isprintable(), f"an unknown character: {character!r}"
            if self.column == self.columns:  # a terminal waits for the next character
                self.wrapped += 1
                self.column = 0
                self._go_down()
            self._cells[self.row][self.column] = character
            self.column += 1

    def _go_down(self):
        if self.row + 1 < self.rows:
            self.row += 1
            return
        self._cells.append([" "] * self.columns)
        self._cells.pop(0)
        self.scrolled += 1

    def _obey(self, parameters, command):
        assert parameters == "", f"unknown parameters: {parameters}{command}"
        if command == "H":
            self.row = self.column = 0
        elif command == "K":
            # Behind the last column the cursor still stands in it.
            column = min(self.column, self.columns - 1)
            self._cells[self.row][column:] = [" "] * (self.columns - column)
        elif command == "J":
            self._obey("", "K")
            for row in range(self.row + 1, self.rows):
                self._cells[row] = [" "] * self.columns
        else:
            raise AssertionError(f"an unknown command: {command}")


class ScreenProcess:
    """`command` on a terminal of rows by columns."""

    def __init__(self, rows, columns, command):
        self.screen = Screen(rows, columns)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(command[0], command)
        self._status = None

    def read(self):
        """Shows what the program has written meanwhile; False once there will be no more."""
        if not select.select([self._terminal], [], [], PATIENCE_SECONDS)[0]:
            raise AssertionError("it writes nothing:\n" + "\n".join(self.screen.lines()))
        try:
            piece = os.read(self._terminal, 4096)
        except OSError:  # nobody has the other end
            piece = b""
        self.screen.feed(self._decoder.decode(piece))
        return bool(piece)

    def until(self, is_right):
        """The first lines of the screen that are right."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not is_right(self.screen.lines()):
            if time.monotonic() > end or not self.read():
                raise AssertionError("the screen never became right:\n" + "\n".join(self.screen.lines()))
        return self.screen.lines()

    def interrupt(self):
        """Ctrl-C, which is not seen on the screen."""
        self.signal(signal.SIGINT)

    def signal(self, number):
        os.kill(self._pid, number)

    def type(self, keys):
        os.write(self._terminal, keys)

    def is_raw(self):
        modes = termios.tcgetattr(self._terminal)[3]
        return not modes & termios.ICANON and not modes & termios.ECHO

    def until_raw(self):
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.is_raw():
            assert time.monotonic() < end, "keys never came at once"
            time.sleep(0.01)

    def wait(self):
        """The exit status, once the screen shows all that was written."""
        while self.read():
            pass
        self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status

    def close(self):
        os.close(self._terminal)
        if self._status is None:
            os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
