"""Fingerprints as twelve words for reading over the telephone, from 256 words that are hard to confuse.

It does not know whose fingerprints they are.

A word stands for one byte, so twelve words give 96 of a fingerprint's 128 bits. To pass other keys off as somebody's,
an attacker must find keys whose hash begins with the same 96 bits. That takes 2^96 trials, or 2^86 to hit any one of
a thousand parties. Making two fingerprints of the attacker's own agree takes only 2^48 trials but gains nothing,
because all parties sign one plan, and the plan holds the keys themselves.
"""

from string import hexdigits

_LIST = """
acid actor adult album amber angle apple april arena armor atlas autumn award axis bacon badge baker banjo
basin beach berry birth blade board bottle bread brick broom bucket button cabin cactus camel candle carpet
castle cedar chalk cherry circus cloud coffee comet copper coral crane cricket crown dagger daisy dance delta
denim desert diamond dinner doctor dolphin dragon drum duck dust eagle earth echo elbow elephant emerald
engine envelope evening fabric falcon farmer feather fence fiddle finger flag flute forest fossil fountain fox
frost fruit galaxy garden ghost giant globe goat gold grape guitar gypsum hammer harbor hazel helmet herring
hill honey horse hotel hunter igloo indigo insect iron island ivory jacket jaguar jelly jewel jigsaw jockey
judge juice jungle kayak kettle keyboard kidney king kitchen knee koala ladder lagoon lamp lantern lemon
leopard letter lily lion lizard lunch magnet mango maple marble meadow melon metal milk mirror monkey moon
mosaic mouse mustard napkin needle nest nickel night noodle north nutmeg oasis ocean office olive onion opera
orange orbit otter oven owl oxygen palace panda paper parrot pencil pepper piano pigeon planet plum poem
potato prism pumpkin puzzle quartz queen quilt rabbit radio raven ribbon river robin rocket rose ruby saddle
salmon satin school scissors shadow shell silver sister skate snow spider spoon squirrel sugar summer swan
syrup table tailor teapot temple thunder tiger tobacco tomato tower train tulip tunnel turtle umbrella uncle
uniform valley vanilla vase velvet violin volcano wagon walnut water whale wheel willow winter wolf wool yacht
yellow yogurt zebra zipper zoo
"""
WORDS = tuple(_LIST.split())
COUNT = 12
BITS = 8 * COUNT
_DIGITS = 32  # of a fingerprint


def spoken(fingerprint: str) -> str:
    """The first 96 bits of a fingerprint (groups of hexadecimal digits), as twelve words."""
    return " ".join(WORDS[byte] for byte in bytes.fromhex(fingerprint)[:COUNT])


def fits(told: str, fingerprint: str) -> bool:
    """Whether `told` names this fingerprint, in digits or in words."""
    said = told.lower().replace(",", " ").split()
    return said == spoken(fingerprint).split() or "".join(said) == fingerprint.replace(" ", "")


def is_fingerprint(told: str) -> bool:
    """Whether a text has the form of a fingerprint, in digits or in words."""
    said = told.lower().replace(",", " ").split()
    digits = "".join(said)
    return (len(said) == COUNT and set(said) <= set(WORDS)) or (
        len(digits) == _DIGITS and all(digit in hexdigits for digit in digits)
    )
