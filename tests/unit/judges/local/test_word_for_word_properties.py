"""Whatever its numbers, language and neighbours: a whole sentence of a document is SUPPORTED and released."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.events import Decision, Verdict
from guardrail.evidence.sentences import sentence_spans
from guardrail.guard import Guard
from guardrail.judges.local import LocalJudge
from guardrail.judges.local.settings import LocalJudgeSettings, VerifierSettings

DOCUMENTS = (
    """# Allotment rules

A full plot measures 250 square metres and costs £62 a year. Half plots are let from 1 April at £31
each. Bonfires are
allowed between 6 p.m. and 9 p.m. Water butts may not be taller than 1.8 m (see Annex C. It was redrawn
in 2023.) on
any plot. The committee meets on the 2nd Tuesday of the month, e.g. to hear complaints.

## Hens

- Up to 12 hens may be kept on a full plot, but no cockerels.
- Every keeper pays No. 3 of the fees, £4.50 [7] a month.
""",
    """Der Kleingarten kostet 180 Euro im Jahr. Strom wird mit 0,38 Euro je kWh abgerechnet. Die
Ruhezeit beginnt am
1. Mai um 13 Uhr und endet um 15 Uhr. Hunde sind erlaubt, z. B. an der Leine.

Das Vereinsheim öffnet um 10 Uhr. Pächter ab 65 Jahren zahlen 12 Euro weniger.""",
    """Le potager mesure 90 m² et se loue 75,50 € par an. L'eau coûte 3,20 € le mètre cube. Les outils
sont prêtés
pendant 7 jours, sauf la tondeuse. Le président répond : « Les abeilles sont les bienvenues. » à tous
les membres.""",
    """La parcela pequeña mide 40 metros y cuesta 55 euros al año. El agua se corta a las 22:30 en
verano. Los socios
mayores de 70 años pagan la mitad.""",
    """छोटे प्लॉट का किराया ₹1,200 प्रति वर्ष है। पानी सुबह 6 बजे से 9 बजे तक मिलता है। डॉ. मेहता बीज
बाँटते हैं।""",
    """小区画の年会費は8,400円です。水道は朝6時から使えます（冬は7時。凍結時は停止。）と案内されています。""",
    """小块菜地每年租金为360元。灌溉用水每立方米4.5元。会员最多可以养6只鸡。""",
    """작은 텃밭은 1년에 45,000원입니다. 물은 오전 6시부터 나옵니다. 회원이 닭을 4마리 기릅니다.""",
    """แปลงเล็กมีค่าเช่าปีละ 900 บาท
น้ำเปิดตั้งแต่ 6.00 น. ถึง 9.30 น.
สมาชิกเลี้ยงไก่ได้ไม่เกิน 5 ตัว""",
    """Малый участок стоит 2400 руб. в год. Полив разрешён с 6 до 9 часов. Члены клуба платят на 15 %
меньше.""",
    """تبلغ مساحة القطعة الصغيرة 40 مترا. يبلغ إيجار القطعة 300 درهم في السنة. يفتح النادي أبوابه
الساعة 9 صباحا.""",
)
# Short lines read like headings and tear their sentence, of which no piece is one.
TORN = {
    "Ruhezeit beginnt am",
    "Los socios",
    "mayores de 70 años pagan la mitad.",
    "Les outils\nsont prêtés",
    "pendant 7 jours, sauf la tondeuse.",
    "डॉ. मेहता बीज",
    "बाँटते हैं।",
    "يفتح النادي أبوابه",
}
REAL = [
    (document, document[start:end])
    for document in DOCUMENTS
    for start, end in zip(*sentence_spans(document), strict=True)
    if not document[start:end].startswith("#") and document[start:end] not in TORN
]
NAMES = st.sampled_from(["Item", "Room", "Locker", "Bus", "Lot"])
NUMBERS = st.integers(1, 99)
FORMS = st.sampled_from(
    [
        "{name} {n} costs ${m}.",
        "{name} {n} weighs {m} kg and costs €{m}.",
        "{name} {n} may be used by {m} people until {m}:15.",
        "Für {name} {n} gilt ein Preis von {m},50 Euro.",
        "Le lot {name} {n} coûte {m} €.",
        "{name} {n} 的价格是{m}元。",
    ]
)


def as_written(text: str) -> str:
    return text


def emphatic(text: str) -> str:
    return f"**{text}**"


def copied(text: str) -> str:
    return text.replace('"', "”").replace("-", "‑").replace(" ", "\u00a0", 1).replace("\n", " ")


def cited(text: str) -> str:
    return f"{text} [1]"


def listed(text: str) -> str:
    return f"Here are the details:\n\n- {text.replace(chr(10), ' ')}"


WAYS = st.sampled_from([as_written, emphatic, copied, cited, listed])


def bare(sentence: str) -> str:
    return sentence.removeprefix("- ")


def check(answer: str, contexts: list[str]) -> None:
    async def verdict() -> None:
        judge = LocalJudge(LocalJudgeSettings(verifier=VerifierSettings(enabled=False)))
        async with Guard(judge) as guard:
            found = await guard.check("What are the rules?", contexts, answer)
        assert [claim.verdict for claim in found.claims] == [Verdict.SUPPORTED], found.claims
        assert found.decision is Decision.RELEASE, found.claims

    asyncio.run(verdict())


@given(st.sampled_from(REAL), WAYS, st.lists(st.sampled_from(DOCUMENTS), max_size=2))
@settings(max_examples=120, deadline=None)
def test_a_sentence_of_a_document_is_supported_and_released(
    real: tuple[str, str], way: object, others: list[str]
) -> None:
    document, sentence = real
    assert callable(way)
    check(way(bare(sentence)), [*(other for other in others if other != document), document])


@given(FORMS, NAMES, st.dictionaries(NUMBERS, NUMBERS, min_size=1, max_size=30), st.data())
@settings(max_examples=120, deadline=None)
def test_whatever_the_numbers(form: str, name: str, values: dict[int, int], data: st.DataObject) -> None:
    sentences = [form.format(name=name, n=n, m=m) for n, m in values.items()]
    check(data.draw(st.sampled_from(sentences)), [" ".join(sentences)])
