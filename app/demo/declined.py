"""
Statements and questions like those that the model answers, but beyond what it can do. Each function returns the text
and the reason, which is the name of a section `cannot` of newcomers.txt.
"""
import words as W
from phrase_files import sentence_case


def too_large(maker):
    """A sum or a difference with a number above those that the model can add."""
    big = maker.rng.randint(1000, maker.rng.choice((1001, 1010, 9999, 99999)))
    other = maker.rng.randint(0, maker.rng.choice((9, 99, 999, 9999)))
    a, b = (big, other) if maker.chance(.6) else (other, big)
    return maker.pick("too large", a=a, b=b), "calculate"


def other_kind(maker):
    """A fact of a kind that the model cannot remember, told or asked, of the user or of a relation."""
    rng = maker.rng
    is_asked, is_user = maker.chance(.35), maker.chance(.75)
    who = "I" if is_user else "my " + rng.choice(maker.phrases["relations"])
    verbs = {verb: verb if is_user else verb + "s" for verb in ("speak", "weigh", "drive", "play", "read")}
    verbs.update({"be": "am", "have": "have", "study": "study", "go": "go", "watch": "watch"} if is_user else
                 {"be": "is", "have": "has", "study": "studies", "go": "goes", "watch": "watches"})
    word, other = maker.some_word(), maker.some_word()
    text = maker.pick("ask other kinds" if is_asked else "other kinds", s=who, h="my" if is_user else who + "'s",
                      Be=verbs["be"].capitalize(), age=rng.randint(5, 99), day=rng.randint(1, 30),
                      cm=rng.randint(120, 200), size=rng.randint(30, 48), kilos=rng.randint(30, 120), x=word,
                      X=sentence_case(other), month=rng.choice(W.MONTHS), colour=rng.choice(W.COLOURS),
                      small=rng.choice(("two", "three", "four")), **verbs)
    return sentence_case(text), "remember" if is_asked else "keep"
