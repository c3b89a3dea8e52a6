"""Invented names and words in the manner of many languages, so that the model learns to copy any text.

A word is in the held-out part if it is in held_names.txt or if a checksum of its letters says so. Training contains
no word of held_names.txt and no invented word with such a checksum, in any case of letters. The real words of words.py
are split by their index instead.
"""
import os
import re
import unicodedata
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
HELD_EVERY = 16  # of invented words

# For each manner of writing: beginnings of syllables, vowels, ends of syllables, ends of words. "-" is nothing.
MANNERS = [tuple(part.split() for part in line.split("|")) for line in """
b br c ch cl d f g gr h j k l m n p qu r s sh st t th w | a e i o u ea ee ai | - - n r l m s ck | y - - e er ton ley
b d f g h j k l m n p r s sch st t w z kl | a e i o u ä ö ü ei au ie | - - n r l s t ß ch | - e er a burg stein heim
b c ch d f g gr j l m n p r s t v br | a e i o u é è ê ou au eau oi | - - n r l s ç | - e é ette ine ois ault
b c d f g h j l ll m n ñ p r s t v qu | a e i o u á é í ó ú ia | - - n r l s | - a o ito ez ín
b c d f g gl gn l m n p r s t v z ch | a e i o u à è ì ò | - - n r l | a o e ino ella etti
b c d f g j l lh m n nh p r s t v x | a e i o u ã õ á ê ç | - - n r s | a o ão inho eira
b c ch cz d f g j k l ł m n p r s sz t w z ż rz | a e i o u y ą ę ó | - - n r l ś ć | - a ek ski owa
b c č d ď f h j k l m n ň p r ř s š t ť v z ž | a e i o u á í ý ě ů | - - n r l k | - a ek ová ka
b cs d f g gy h j k l m n ny p r s sz t v z zs | a e i o u á é ö ő ü ű | - - n r l s | - a ka ő i
b c ç d f g h j k l m n p r s ş t v y z | a e ı i o ö u ü | - - n r l k ş ğ | - can gül i han
b d f g h j k l m n p r s sk st t v | a e i o u å æ ø ä ö | - - n r l s g | - e a sen dóttir ð
b c d f g l m n p r s t bh ch dh mh | a e i o u á é í ó ú ao ia | - - n r l s | - n án een ín
b d dj g h j k l m n p r s t v w z sj oe | a e i o u aa ee ij uu ie | - - n r l s t | - je ke a sma
b d f g k l m n p r s sh ch t v z zh kh | a e i o u ya yu | - - n r l v k | - a ov eva ka in sky
b d dh f gh h j k kh l m n q r s sh t th w y z | a i u aa | - - n r l d m b | - a i ah een
b bh ch d dh g gh h j k kh l m n p r s sh t v y | a i u aa ee o | - - n r m sh | - a i esh endra ita
k s t n h m r y w g z d b sh ch ts ky ry | a i u e o | - - - n | ko ki mi to ro -
b ch d f g h j k l m n p q r s sh t w x y z zh | a e i o u ai ao ia ie ou ü | - - n ng | - -
b ch d g h j k m n p s t y | a e i o u ae eo eu yu yeo oo | - - n ng k m l | - -
b ch d đ g h kh l m n ng nh ph qu t th tr v x | a ă â e ê i o ô ơ u ư ạ ả ế ộ ữ | - - n ng nh m c t | - -
b d f g gb j k l m n p r s ṣ t w y | a e ẹ i o ọ u | - - - n | de la - yemi
b ch d f g h j k l m mb mw n nd ng nj p r s sh t v w y z | a e i o u | - - - | - a i o
h k l m n p w | a e i o u ā ō ai au | - - - | - a i o
a b c d e f g h i j k l m n o p q r s t u v w x y z | a e i o u y | b c d f g h j k l m n p q r s t v w x z | - - x z q
б в г д ж з к л м н п р с т ф х ч ш | а е и о у я ю ы | - - н р л й | - а ов ка ий
β γ δ θ κ λ μ ν π ρ σ τ φ χ | α ε η ι ο υ ω ά έ ή ί ό | - - ν ρ ς λ | - ος α ης
""".strip().split("\n")]
LATIN = len(MANNERS) - 2
ACCENTED = "ășțėơưķļņģàâãäåæçćčďéèêëěęíìîïıłñńňóòôõöøőřśšşťúùûüűůýžźżđğīāōūßœþð"
# Letters with accents of all languages, Greek and Cyrillic, so that training contains every byte of such letters.
FOREIGN = [c for first, last in ((0xdf, 0x17f), (0x1a0, 0x1b0), (0x1cd, 0x1dc), (0x218, 0x21b), (0x386, 0x3ce),
                                 (0x410, 0x45f), (0x1e80, 0x1ef9)) for c in map(chr, range(first, last + 1))
           if c.isalpha() and c == c.lower() and len(c.upper()) == 1]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PARTICLES = ["O'", "D'", "L'", "Mc", "Mac", "al-", "Ben ", "Van ", "de ", "San ", "Saint-", "Le ", "El ", "Da "]


def plain(word):
    """Small letters, composed, for comparisons."""
    return unicodedata.normalize("NFC", word).lower()


def read_list(name):
    path = os.path.join(HERE, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [word.strip() for line in f if not line.startswith("#") for word in line.split(",") if word.strip()]


HELD_NAMES = read_list("held_names.txt")
HELD_SET = frozenset(plain(name) for name in HELD_NAMES)


def is_held(word):
    word = plain(word)
    return (zlib.crc32(word.encode()) % HELD_EVERY == 0 or word in HELD_SET
            or any(part in HELD_SET for part in re.findall(r"[^\W\d_]+", word)))


def spoken(rng, manner=None):
    """A word that somebody could pronounce."""
    begins, vowels, ends, last = manner or MANNERS[rng.randrange(len(MANNERS))]
    nothing = lambda part: "" if part == "-" else part
    word = ""
    for _ in range(rng.choice([1, 1, 2, 2, 2, 3])):
        word += ("" if rng.random() < .12 else rng.choice(begins)) + rng.choice(vowels) + nothing(rng.choice(ends))
    return word + nothing(rng.choice(last))


def any_letters(rng, held):
    """
    Letters without any pattern, some with accents. A few words consist of only two to five different letters. In
    training, few have letters of all languages.
    """
    alphabets = (LETTERS, LETTERS, LETTERS, LETTERS + ACCENTED, rng.sample(LETTERS, 8) + FOREIGN)
    letters = rng.choice(alphabets)
    if not held and letters is alphabets[-1] and rng.random() < .9:
        letters = LETTERS
    if rng.random() < .12:
        letters = rng.sample(letters, rng.randint(2, 5))
    return "".join(rng.choice(letters) for _ in range(rng.randint(3, 10)))


def far_eastern(rng):
    """A word of one script whose letters have three bytes each."""
    first, last = rng.choice(((0x4e00, 0x9fa5), (0x4e00, 0x9fa5), (0x3041, 0x3093), (0x30a1, 0x30f3), (0xac00, 0xd7a3)))
    return "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(2, 4)))


def similar(rng, word):
    """A word that begins or ends like this one. It can be the same word."""
    at = rng.randint(1, max(1, len(word) - 1))
    other = spoken(rng, MANNERS[rng.randrange(LATIN)])[:rng.randint(1, 5)]
    return word[:at] + other if rng.random() < .75 else other + word[at:]


def made_up(rng, latin=False, held=False):
    """
    A word in small letters. Held-out words are harder, because more of them have no pattern. With as many of these in
    training, most of the loss was in their letters.
    """
    while True:
        r = rng.random()
        if r < .012 and not latin:
            return far_eastern(rng)
        word = (spoken(rng, MANNERS[rng.randrange(LATIN)] if latin else None) if r < (.6 if held else .85)
                else any_letters(rng, held))
        if 2 <= len(word) <= 14:
            return word


def code(rng):
    """What is told like a word but is none: "221B", "#ff8800", "3.14159", "x86_64"; sometimes a very long word."""
    digits = lambda n: "".join(rng.choice("0123456789") for _ in range(n))
    letters = lambda n: "".join(rng.choice(LETTERS) for _ in range(n))
    r = rng.random()
    if r < .2:
        return digits(rng.randint(1, 4)) + letters(rng.randint(1, 2)).upper()
    if r < .35:
        return "#" + "".join(rng.choice("0123456789abcdef") for _ in range(rng.choice((3, 6, 6))))
    if r < .5:
        return digits(rng.randint(1, 3)) + "." + digits(rng.randint(1, 6))
    if r < .8:
        text = letters(rng.randint(1, 4)) + rng.choice(("_", "-", ".", "/", "+", "", "")) + digits(rng.randint(1, 4))
        return text.upper() if rng.random() < .5 else text
    return "".join(made_up(rng, latin=True) for _ in range(rng.randint(3, 7)))


def name(rng):
    """A name of a person or a place: capitals, and sometimes two parts with a hyphen, an apostrophe or a space."""
    word = made_up(rng).capitalize()
    r = rng.random()
    if r < .06:
        return f"{word}-{rng.choice([made_up(rng).capitalize(), made_up(rng)])}"
    if r < .12:
        return rng.choice(PARTICLES) + word
    if r < .16:
        at = rng.randint(1, len(word))
        return word[:at] + rng.choice("'’") + word[at:]
    if r < .17:
        return rng.choice(["'s-", "'t ", "d'", "l'"]) + word
    if r < .18:  # accents as characters of their own
        return unicodedata.normalize("NFD", word)
    if r < .26:
        return f"{word} {made_up(rng).capitalize()}"
    return word


def number_of_few_digits(rng):
    """A long number in which one or two digits are repeated: "7777777", so that the model learns to count them."""
    while True:
        digits = rng.sample("0123456789", rng.choice((1, 2, 2)))
        text = "".join(rng.choice(digits) for _ in range(rng.randint(2, 8))).lstrip("0")
        if text and int(text) % 8:  # the others are held out
            return text


def misspelt(rng, words):
    """The words with one letter of a longer word left out, doubled, or exchanged with the next one."""
    long = [i for i, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    if long:
        i = rng.choice(long)
        at, word = rng.randint(1, len(words[i]) - 2), words[i]
        words[i] = word[:at] + rng.choice((word[at + 1:], word[at] + word[at:],
                                           word[at + 1] + word[at] + word[at + 2:]))
    return " ".join(words)
