"""Tasks on the letters of words: spelling, reversing and counting. Each function returns a question and its answer."""


def numbered(items):
    return ", ".join(f"{item} {i + 1}" for i, item in enumerate(items))


def some_task(maker):
    """In quotes and between hyphens each letter of the word is a token."""
    x = maker.some_word()
    r = maker.rng.random()
    if maker.hard and maker.chance(.15):
        r = maker.rng.uniform(.75, 1)
    letters, around = "-".join(x), "-".join(x[::-1])
    if r >= .75:
        return several_words(maker, "repeat" if r < .9 else "count words")
    if maker.hard and r < .1:
        return several_words(maker, "spell several")
    section, answer = (
        ("spell", f"{letters}.") if r < .25 else
        ("reverse", f'{letters}, so backwards {around}: "{x[::-1]}".') if r < .45 else
        ("count letters", f"{numbered(x)}: {len(x)} letters.") if r < .6 else
        ("first letter", f"{x[0]}.") if r < .68 else
        ("last letter", f"{letters}, so {x[-1]}."))
    return maker.asked(often_bare(maker, phrasing(maker, section, x))), answer


def phrasing(maker, section, x):
    """A task on a word or words, in one of its phrasings."""
    return (maker.also(section) if maker.takes_also(section) else maker.pick(section, x="{x}")).format(x=x)


def several_words(maker, section):
    n = maker.rng.randint(1, 5)
    words = [maker.some_word() for _ in range(n)]
    question = maker.asked(phrasing(maker, section, " ".join(words)))
    if section == "repeat":
        return question, " ".join(words) + "."
    if section == "count words":
        return question, f"{numbered(words)}: {n} word{'s' if n > 1 else ''}."
    return often_bare(maker, question), ", ".join("-".join(word) for word in words) + "."


def often_bare(maker, question):
    """The question, sometimes without its quotation marks."""
    return question.replace('"', "") if maker.chance(.4 if maker.hard else .15) else question
