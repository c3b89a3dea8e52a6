#!/usr/bin/env python3
"""
test_demo_names.py CHAT MAKE_MODEL DEMO: the built-in model repeats 200 names and 100 made-up words that its training
does not contain: in the answer, in the next turn, after five turns. DEMO is the folder app/demo.
"""
import sys

from support.chat_case import ChatCase
from support.program_case import PROGRAM, main

DEMO = sys.argv[3]
del sys.argv[3]
sys.dont_write_bytecode = True
sys.path.insert(0, DEMO)
import score  # noqa: E402 (needs the path above)

# Right answers of demo.gguf, the same on every machine. The bar of score.py is 99.5 %.
# The turns between a name and its question come from the corpus, so another corpus gives other numbers.
LEAST = {'names 0': 199, 'names 1': 196, 'names 5': 194, 'made up 0': 99, 'made up 1': 98, 'made up 5': 98}


class DemoNames(ChatCase):
    def test_repeats_names_and_words(self):
        asked, right = score.score(PROGRAM, env=self.env, talks=score.name_conversations(200))
        self.assertEqual(sum(asked.values()), 3 * 300)
        for kind, least in LEAST.items():
            self.assertGreaterEqual(right[kind], least, right)


if __name__ == '__main__':
    main()
