"""Questions for general facts: capitals, days, months, planets, opposites, plurals, colours."""
import words as W
from phrase_files import sentence_case

LISTS = [("the days of the week", W.DAYS), ("the planets", W.PLANETS), ("the months", W.MONTHS),
         ("the seasons", W.SEASONS)]


def some_fact(maker):
    """-> (question, answer). The answer is None if the model should say that it does not know."""
    rng, r = maker.rng, maker.rng.random()
    if r < .4:
        return capital(maker)
    if r < .5:
        i = rng.randrange(7)
        day, after, before = W.DAYS[i], W.DAYS[(i + 1) % 7], W.DAYS[i - 1]
        if maker.chance(.5):
            return maker.pick("day after", x=day), f"{after} comes after {day}."
        return maker.pick("day before", x=day), f"{before} comes before {day}."
    if r < .62:
        return month(maker)
    if r < .7:
        i = rng.randrange(8)
        return maker.pick("planet", x=W.ORDINALS[i]), f"The {W.ORDINALS[i]} planet is {W.PLANETS[i]}."
    if r < .82:
        a, b = rng.choice(list(W.OPPOSITES.items()))
        if maker.chance(.3) and list(W.OPPOSITES.values()).count(b) == 1 and b not in W.OPPOSITES:
            a, b = b, a
        return maker.pick("opposite", x=a), f"The opposite of {a} is {b}."
    if r < .93:
        one, many = rng.choice(list(W.PLURALS.items()))
        return maker.pick("plural", x=one), f"The plural of {one} is {many}."
    if r < .97:
        thing, colour = rng.choice(list(W.THING_COLOURS.items()))
        return maker.pick("colour of", x=thing), f"{sentence_case(thing)} is {colour}."
    name, items = rng.choice(LISTS)
    return maker.pick("list", x=name), ", ".join(items) + "."


def capital(maker):
    """In training, one of four places has no capital that the model could know."""
    if not maker.held and maker.chance(.25):
        place = maker.rng.choice(W.OTHER_PLACES) if maker.chance(.6) else maker.new_word(True)
        if place not in W.CAPITALS:
            return maker.pick("capital", c=place), None
    country, city = maker.rng.choice(list(W.CAPITALS.items()))
    return maker.pick("capital", c=country), f"The capital of {country} is {city}."


def month(maker):
    i, r = maker.rng.randrange(12), maker.rng.random()
    name = W.MONTHS[i]
    if r < .35:
        return maker.pick("month after", x=name), f"{W.MONTHS[(i + 1) % 12]} comes after {name}."
    if r < .7:
        return maker.pick("month days", x=name), f"{name} has {W.MONTH_DAYS[name]} days."
    return maker.pick("month", x=W.ORDINALS[i]), f"The {W.ORDINALS[i]} month is {name}."
