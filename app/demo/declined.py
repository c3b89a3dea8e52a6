"""
Statements and questions that the model should decline, because they are beyond what it can do. Each function that makes
one returns the text and the reason, which is the name of a section `cannot` of newcomers.txt, "code" or "language".
"""
import re

import words as W
from phrase_files import bare_words, sentence_case

ARTICLES = ["a", "the", "my", "some", "an old", "a good", "the best", "your"]
OPERATIONS = ["times", "divided by", "over", "x", "/"]
# The reason for declining a question is that of the first pattern which the question contains.
PATTERNS = [(name, re.compile(pattern)) for name, pattern in (
    ("calculate", r"\btimes \d|\bdivided by\b|\d (over|x|/) \d|\broot of\b|\bhalf of \d"),
    ("code", r"\b(write|fix|debug|explain|review)\b.*\bcode\b|\b(python|javascript)\b"),
    ("language", r"\btranslate\b|\bhow do you say\b|\bdo you speak\b|\blanguage\b"),
    ("now", r"\b(the weather|the time|the news|date today|stock market|score of|will it rain)\b"),
    ("write", r"\b(write|poem|story|essay|song|draw|picture)\b"),
    ("why", r"\bwhy\b"),
    ("how", r"\b(how (do|can) i|how to|teach me|help me|explain how)\b"),
    ("choose", r"\b(recommend|best|which|buy|recipe|cost|should i|book a)\b"),
    ("who", r"\b(who|when|where|what happened|population|capital|how (far|big|old|many))\b"))]


def reason_of(question):
    text = question.lower()
    return next((name for name, pattern in PATTERNS if pattern.search(text)), "other")


def some_question(maker):
    if not maker.held and maker.chance(.22):
        if maker.hard and maker.chance(.1):
            return stranger(maker)
        text, reason = too_large(maker) if maker.chance(.25) else other_kind(maker)
        return maker.loosely(text), reason
    question = maker.loosely(unknown(maker))
    return question, reason_of(question)


def unknown(maker):
    """A question about the world, or a task."""
    rng, phrases = maker.rng, maker.phrases
    if (maker.hard or maker.held) and maker.chance(.15 if maker.held else .3):
        return rng.choice(maker.kept_phrases["decline"]) if maker.held else additional(maker)
    if maker.hard and maker.chance(.35):
        return beyond(maker)
    if maker.chance(.25):  # a question about something that bitnet-chat does not have
        x = " ".join(maker.some_word() for _ in range(rng.choice([1, 1, 2])))
        if x not in maker.topic_names:
            return sentence_case(maker.phrase(phrases["help"], "").format(x=rng.choice(["", "the ", "a "]) + x))
    if maker.chance(.4):
        return maker.part("anything").format(x=maker.some_word(), y=rng.choice(maker.spell), n=rng.randint(2, 999))
    r = rng.random()
    if r < .17:
        return f"Who {maker.part('who')} {maker.part('things')}?"
    if r < .34:
        return maker.pick("how", x=maker.part("hows"))
    if r < .55:
        return maker.pick("what", x=maker.part("whats"))
    if r < .66:
        return f"Why {maker.part('whys')}?"
    if r < .77:
        return maker.pick("write", x=maker.part("writes"))
    return maker.part("other").format(c=rng.choice(list(W.CAPITALS)), t=maker.value("home"), n=rng.randint(11, 99),
                                      f=rng.choice(phrases["foreign"]))


def beyond(maker):
    """A question of arbitrary words that the model cannot answer."""
    rng, phrases = maker.rng, maker.phrases

    def word():
        return rng.choice(maker.lexicon) if maker.chance(.4) else maker.some_word()
    makers = {"w": word, "W": lambda: sentence_case(word()), "d": lambda: rng.choice(ARTICLES),
              "v": lambda: maker.part("who"), "i": lambda: rng.choice(["is", "are", "do", "does", "has"]),
              "m": lambda: str(rng.randint(2, 99)), "o": lambda: rng.choice(OPERATIONS),
              "f": lambda: rng.choice(phrases["foreign"])}
    text = re.sub(r"\{(\w)\}", lambda found: makers[found[1]](), rng.choice(phrases["beyond"]))
    return text + rng.choice(["?", ".", "?", ""])


def additional(maker):
    """An additional phrasing for training. {x} in it is a name or any word."""
    kept = {bare_words(question) for question in maker.kept_phrases["decline"]}
    while True:
        x = maker.value("name") if maker.chance(.5) else maker.some_word()
        text = maker.also_unless("decline", kept).replace("{x}", x)
        if x not in maker.topic_names:
            return text


def stranger(maker):
    """A question who somebody is whom the user has not mentioned."""
    question = sentence_case(maker.also("who is").replace("{n}", maker.value("name")))
    return maker.loosely(question, False), reason_of(question)


def too_large(maker):
    """A sum or a difference with a number above those that the model can add."""
    big = maker.rng.randint(1000, maker.rng.choice((1001, 1010, 9999, 99999)))
    other = maker.rng.randint(0, maker.rng.choice((9, 99, 999, 9999)))
    a, b = (big, other) if maker.chance(.6) else (other, big)
    if maker.hard and maker.chance(.3):
        a, b, c = (maker.rng.randint(1, maker.rng.choice((9, 99))) for _ in range(3))
        return maker.also("three numbers").format(a=a, b=b, c=c), "calculate"
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
    section = "ask other kinds" if is_asked else "other kinds"
    phrase = maker.also(section) if maker.takes_also(section) else maker.rng.choice(maker.phrases[section])
    text = phrase.format(s=who, h="my" if is_user else who + "'s", Be=verbs["be"].capitalize(), age=rng.randint(5, 99),
                         day=rng.randint(1, 30), cm=rng.randint(120, 200), size=rng.randint(30, 48),
                         kilos=rng.randint(30, 120), x=word, X=sentence_case(other), month=rng.choice(W.MONTHS),
                         colour=rng.choice(W.COLOURS), small=rng.choice(("two", "three", "four")), **verbs)
    return sentence_case(text), "remember" if is_asked else "keep"
