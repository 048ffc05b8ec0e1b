"""Text for toys: what toy tokenizers are trained on, and random Unicode for testing them."""

from random import Random

WORDS = """
    the a of and to in is each has how many much left total price apples eggs books boys girls train miles
    hours minutes day week answer question step first then so because sells buys gives makes more less than
    half twice number sum product equals therefore we get have was were will with for his her their it that
    this not all any
""".split()  # noqa: SIM905
NAMES = ["Anna", "Ben", "Carla", "David", "Emma", "Farid", "Grace", "Hana", "Ivan", "Jörg", "Zoë", "Müller"]
FOREIGN = (
    "café naïve Straße élan año coração",
    "Привет, мир",
    "漢字とかな",
    "한국어",
    "γειά σου",
    "👍🏽 👩‍👧",
)
FORMULAS = (r"\frac{1}{2}", r"\boxed{42}", r"$x^2 + y_1$", r"\sqrt{3}", "3 * 4 = 12", "(a + b)")

ODDITIES = (
    "café", "cafe\u0301", "na\u0308ive", "Å", "A\u030a", "ﬁ", "½", "Ⅳ", "①", "x²", "漢字", "かな", "한국어",
    "\u1112\u1161\u11ab", "가\u11a8", "привет", "שלום", "العربية", "हिन्दी", "ไทย",
    "👩‍👩‍👧‍👦", "👍🏽", "🇫🇷", "❤️", "𝔹", "\u200b", "\u00a0", "\u3000", "▁", "▁▁", "Ġ", "đ", "<0x41>",
    "<|im_end|>", "<|im_start|>", "<|endoftext|>", "</s>", "<s>", "<unk>", "<eos>", "<bos>", "<start_of_turn>",
    "##a", "'s", "don't", r"\frac{1}{2}", r"\boxed{7}", "$x_1$", "<b>&amp;</b>", "\ufffd",
)  # fmt: skip
BLANKS = (" ", "  ", "   ", "       ", "\n", "\n\n", "\r\n", "\t", "\n\n\n", " \n", "\t\t", " \n ")

FOLLOWERS = {word: Random(word).choices(WORDS, k=2) for word in WORDS}
"""What tends to stand behind a word, in the text of every seed."""


def corpus(seed: int | str, lines: int = 300) -> list[str]:
    """Lines of word problems, formulas and a little of other scripts, enough to train a vocabulary of some
    hundred; each seed prefers other words."""
    rng = Random(seed)
    favourites = rng.sample(WORDS, len(WORDS) // 3)
    return [_line(rng, favourites) for _ in range(lines)]


def _line(rng: Random, favourites: list[str]) -> str:
    kind = rng.random()
    if kind < 0.08:
        return rng.choice(FOREIGN)
    if kind < 0.2:
        return f"So {rng.choice(FORMULAS)}  gives \\boxed{{{rng.randint(0, 999)}}}.\n\n"
    words = [rng.choice(favourites)]
    while len(words) < 12 and rng.random() < 0.9:
        words.append(rng.choice(FOLLOWERS[words[-1]] if rng.random() < 0.8 else favourites))
    words[0] = words[0].capitalize()
    words.insert(rng.randrange(len(words)), rng.choice(NAMES))
    words.insert(rng.randrange(len(words)), str(rng.randint(0, 2000)))
    return " ".join(words) + rng.choice((".", "?", ".\n", ":\n  "))


def random_text(rng: Random, n: int) -> str:
    """A text of n random pieces: words, numbers, composed and decomposed accents, scripts, joined emoji, runs of
    blanks, LaTeX, what looks like a control token, and now and then any code point at all."""
    return "".join(_piece(rng) for _ in range(n))


def _piece(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(("", " ", " ")) + rng.choice(WORDS + NAMES)
    if kind < 0.45:
        return str(rng.randint(0, 10 ** rng.randint(1, 6)))
    if kind < 0.6:
        return rng.choice(BLANKS)
    if kind < 0.7:
        return rng.choice(".,:;?!()[]{}\\/$%&*+-=<>'\"_#@^~|`")
    if kind < 0.95:
        return rng.choice(ODDITIES)
    return chr(rng.choice((rng.randint(1, 0x2FF), rng.randint(0x300, 0xD7FF), rng.randint(0xE000, 0x1FFFF))))
