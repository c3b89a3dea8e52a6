"""
Test cases of the chat on a screen in tmux.
"""
from support.chat_case import ChatCase
from support.program_case import PROGRAM
from support.terminal_screen import Screen


class ScreenCase(ChatCase):
    opened = ('>>>',)  # patterns that the screen shows when the chat is open

    def open(self, columns, rows, *args):
        screen = Screen(self.home.name, self.env, [PROGRAM, self.model, '--private', *args], columns, rows)
        self.addCleanup(screen.close)
        for pattern in self.opened:
            screen.expect(pattern)
        return screen
