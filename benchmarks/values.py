"""Time and memory of ``guardrail.values`` and of the severity rater: ``python benchmarks/values.py``.

With ``--libraries`` also what the libraries considered would cost, those that are installed.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

CLAIM = (
    "According to the leaflet, adults should take 500 mg twice a day with food for up to 7 days, and "
    "must not exceed 2 g in 24 hours without asking Dr. Smith."
)
SHORT_CLAIMS = (
    "Refunds are paid within 14 days to the card that was charged.",
    "The service began as a small project and grew slowly over the years.",
    "Rooms are cleaned on weekdays, and guests may use the kitchen until 10 p.m.",
    "The World Health Organization recommends drinking plenty of water in summer.",
)
PARAGRAPH = (
    "The Standard plan costs $49.99 a month, or $499 when paid yearly by 31 March 2026; the World "
    "Health Organization pays nothing. About 3.1 million people in Germany, France and the United "
    "States used it in 2024, nearly half of them twice a week. Rooms are kept between 18 and 24 °C. "
    "Orders over 1,000 kg ship within 5 business days from 9 AM to 17:30. The service began as a small "
    "project and grew slowly, because nobody had expected that so many readers would ask for it; its "
    "makers still answer letters themselves and like to be asked hard questions about what they built "
    "and why. Write to help@example.com or see https://example.com/terms. "
)
# Worst cases looked for: long runs that some naive expression would read again and again.
HOSTILE = {
    "digits": "1" * 50_000,
    "grouped": "1," * 25_000,
    "at signs": "a@" * 25_000,
    "dots": "a." * 25_000,
    "capitals": "A" * 50_000,
    "names": "Ab " * 17_000,
    "number words": "hundred " * 6_000,
    "hyphens": "a-" * 25_000,
    "parentheses": "(" * 50_000,
    "plus digits": "+1 " * 17_000,
}
LIBRARIES = {
    "pint": "import pint; u = pint.UnitRegistry(); f = lambda: u('500 mg')",
    "babel": "import babel.numbers as b; f = lambda: b.parse_decimal('5.000,00', locale='de')",
    "phonenumbers": "import phonenumbers as p; f = lambda: list(p.PhoneNumberMatcher(TEXT, 'US'))",
    "text_to_num": "import text_to_num as t; f = lambda: t.alpha2digit('two hundred and five rooms', 'en')",
    "dateutil": "from dateutil.parser import parse; f = lambda: parse('31 March 2021')",
    "price_parser": "from price_parser import Price; f = lambda: Price.fromstring('costs $5,000.00 each')",
    "quantulum3": "from quantulum3 import parser; f = lambda: parser.parse(TEXT)",
    "dateparser": "from dateparser.search import search_dates as s; f = lambda: s(TEXT, languages=['en'])",
    "guardrail.values": "from guardrail.values import extract; f = lambda: extract(TEXT)",
}


def timed(call: Callable[[], object], repeat: int) -> float:
    """Median milliseconds of a call."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def resident_mb() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=200, help="calls per figure (default 200)")
    parser.add_argument("--words", type=int, default=1500, help="words of the context (default 1500)")
    parser.add_argument(
        "--libraries", action="store_true", help="also measure the libraries that are installed"
    )
    arguments = parser.parse_args()

    before = resident_mb()
    values = importlib.import_module("guardrail.values")
    values.extract(CLAIM)
    print(f"import and first call of guardrail.values: {resident_mb() - before:.1f} MB")
    severity = importlib.import_module("guardrail.claims.severity")
    rater, sentence = severity.BuiltinSeverityRater(), severity.SegmentKind.SENTENCE

    words = (PARAGRAPH * (arguments.words // 50)).split()[: arguments.words]
    context = " ".join(words)
    found = values.ValueSet(values.extract(context))
    claimed = values.extract(CLAIM)
    amount, few = len(values.extract(context)), max(5, arguments.repeat // 10)
    claim_ms = timed(lambda: values.extract(CLAIM), arguments.repeat)
    context_ms = timed(lambda: values.extract(context), few)
    match_ms = timed(lambda: [found.match(v) for v in claimed], arguments.repeat)
    severity_ms = timed(lambda: rater.rate(CLAIM, sentence), arguments.repeat)
    print(f"extract, claim of {len(CLAIM.split())} words, {len(claimed)} values: {claim_ms:.3f} ms")
    print(f"extract, context of {len(words)} words, {amount} values: {context_ms:.2f} ms")
    print(f"match the claim's values with the context's: {match_ms:.3f} ms")
    print(f"severity of the claim: {severity_ms * 1000:.1f} µs")
    short_ms = timed(lambda: [rater.rate(claim, sentence) for claim in SHORT_CLAIMS], arguments.repeat)
    letters = sum(map(len, SHORT_CLAIMS)) // len(SHORT_CLAIMS)
    print(f"severity of a claim of {letters} characters: {short_ms * 1000 / len(SHORT_CLAIMS):.1f} µs")
    print("hostile texts, 50,000 characters (ms); twice as long in brackets, linear when about double:")
    for name, text in HOSTILE.items():
        once, twice = timed(partial(values.extract, text), 3), timed(partial(values.extract, text * 2), 3)
        rated = timed(partial(rater.rate, text, sentence), 1)
        print(f"  {name:14} {once:8.1f} ({twice:.1f})   severity {rated:.1f}")
    if arguments.libraries:
        _libraries()


def _libraries() -> None:
    print(
        "libraries, each in a process of its own: MB after the first call, its seconds, milliseconds a call"
    )
    for name, code in LIBRARIES.items():
        script = (
            "import time\nfrom pathlib import Path\n"
            "mb = lambda: int(Path('/proc/self/statm').read_text().split()[1]) * 4096 / 2**20\n"
            f"TEXT = {CLAIM!r}\na, t = mb(), time.perf_counter()\n{code}\nf()\n"
            "b, u = mb(), time.perf_counter()\n"
            "for _ in range(20): f()\n"
            "print(f'{b - a:5.1f} {u - t:6.2f} {(time.perf_counter() - u) * 50:8.3f}')"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        print(f"  {name:18} {done.stdout.strip() if done.returncode == 0 else 'not installed'}")


if __name__ == "__main__":
    main()
