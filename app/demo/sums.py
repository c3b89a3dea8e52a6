"""Sums and differences: random operands, numbers in words and in figures, and answers digit by digit."""

ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()
TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()
TOP = 999


def in_words(n, joint=" and ", hyphen="-"):
    """0 <= n <= 999; joint stands after the hundreds, hyphen after the tens."""
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (hyphen + ONES[n % 10] if n % 10 else "")
    rest = joint + in_words(n % 100, joint, hyphen) if n % 100 else ""
    return f"{ONES[n // 100]} hundred{rest}"


def digits(n):
    """The digits of n, ones first."""
    return [int(d) for d in str(n)[::-1]]


def added(a, b):
    """
    Adds digit by digit. The answer repeats the numbers in figures, and it contains each step before a later step
    needs it.
    """
    if a < 10 and b < 10:
        return f"{a} + {b} = {a + b}."
    da, db, steps, carried = digits(a), digits(b), [], 0
    for i in range(max(len(da), len(db))):
        parts = [1] * carried + [d[i] for d in (da, db) if i < len(d)]
        total = sum(parts)
        if len(parts) > 1:
            steps.append(f"{' + '.join(map(str, parts))} = {total}")
        carried = total // 10
    return f"{a} + {b}: {', '.join(steps)}, so {a} + {b} = {a + b}."


def subtracted(a, b):
    """The same for a - b. A negative result comes from b - a."""
    if a < b:
        steps = subtracted(b, a).split(", so ")[0].removesuffix(".")
        return f"{a} - {b} = -({steps}), so {a} - {b} = -{b - a}."
    if a < 10:
        return f"{a} - {b} = {a - b}."
    da, db, steps, borrowed = digits(a), digits(b), [], 0
    for i, digit in enumerate(da):
        if i >= len(db) and not borrowed:
            break
        here, less = digit - borrowed, db[i] if i < len(db) else 0
        borrowed = int(here < less)
        steps.append(f"{here + 10 * borrowed} - {less} = {here + 10 * borrowed - less}")
    return f"{a} - {b}: {', '.join(steps)}, so {a} - {b} = {a - b}."


def operands_held(a, b):
    """One pair in eight is held out of training. Equal numbers have their own rule: the hash is 0 for all of them."""
    return a % 8 == 0 if a == b else (a * 7919 + b * 104729) % 8 == 0


def operands(rng, top, adds):
    """
    Two numbers up to top. Short numbers are about as frequent as long ones. Numbers with many zeros and nines, which
    carry and borrow most, are more frequent than by chance. Of the pairs to add whose sum is above top, three in ten
    are kept.
    """
    def number():
        if rng.random() < .12:
            return rng.choice((10, 100)) * rng.randint(1, 9) + rng.choice((-1, 0, 0, 1, 99))
        return rng.randint(0, rng.choice((9, 20, 99, top)))

    while True:
        a, b = number(), number()
        if adds and (a + b <= top or rng.random() < .3):
            return a, b
        if not adds:
            return (a, b) if rng.random() < .25 else (max(a, b), min(a, b))


def written(rng, n, words, hyphen=None):
    """n in figures or in words, with a random hyphen after the tens unless one is given"""
    return in_words(n, rng.choice((" and ", " and ", " ")), hyphen or rng.choice("-- ")) if words else str(n)
