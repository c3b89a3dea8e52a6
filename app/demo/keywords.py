"""Statements of a fact among arbitrary words, and with adverbs; words that are no values."""
import re

from phrase_files import bare_words

# The common words of a statement, between the words that matter.
COMMON = "i my me we our it is was are the a that and in of to so have this here at".split()
# A user means none of these with "My name is X". If training contained them as values, the model would take "That" of
# "Do you know X? That is where I live" for the value.
NOT_VALUES = frozenset(COMMON + """
an am be do does did has had will would can could should may not no yes you your he she her his they them their its
what which where who whom when why how there then than these those if or but as by for from with on at up out into
about very really just only also too now again still gladly most more best better please know like likes love loves
called call name named live lives living work works something someone anything nothing thing things everybody everyone
told tell say said because always never often usually every all any some one me us myself been being
""".split())


def key_statement(maker, phrases, kept, needs):
    """
    One of `phrases` (a few words that name a kind of fact) and the placeholders `needs` among common and arbitrary
    words, in any order. So the model learns which words tell the kind of a fact, in a phrasing that it does not know.
    `kept` are the statements (bare_words) that training must not contain.
    """
    rng = maker.rng
    while True:
        words = [rng.choice(COMMON if maker.chance(.55) else maker.lexicon) for _ in range(rng.randint(1, 5))]
        for part in (rng.choice(phrases), *needs):
            words.insert(rng.randint(0, len(words)), part)
        text = " ".join(words)
        bare = f" {bare_words(text.format(x='xx', s='ss'))} "
        if not any(f" {one} " in bare for one in kept):
            return text + rng.choice(("", ".", "!"))


def with_adverb(maker, text, adverbs):
    """
    Sometimes puts an adverb before the value of a statement: "I drink really often {x}". So the model learns that an
    adverb is no part of the value.
    """
    if not maker.chance(.12):
        return text
    return re.sub(r"(?<=[a-z]) ((?:an? |the )?)\{x\}", f" {maker.rng.choice(adverbs)} \\1{{x}}", text, count=1)
