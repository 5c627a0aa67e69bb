"""Where sentences end: one text a case, ``|`` standing where it is to be cut."""

from __future__ import annotations

import pytest

from guardrail.claims import Segmenter
from guardrail.events import SegmentKind
from guardrail.evidence.sentences import sentence_spans

KEPT_TOGETHER = [
    "It costs $3.50 a month",
    "Version v2.0.1 runs on Python 3.11",
    "Dr. Smith and Mrs. Jones met Prof. Dr. Meyer",
    "Use a fruit, e.g. Apples or pears, i.e. Something sweet",
    "The U.S. Army and the U.N. Charter",
    "J. R. R. Tolkien wrote it",
    "See No. 5, p. 12, Fig. 3 and Sec. 4 of vol. 2",
    "It opens at 9 a.m. Monday",
    "Wait... there is more",
    "He said it … and left",
    "Visit https://example.com/a.b?c=d.e!f for more",
    "Write to jane.doe@example.co.uk or to sales@example.com",
    "The limit (see Annex B. It was changed.) is 5",
    'She said "Go. Now. Run." and left',
    "The rule “Pay first. Ask later.” holds",
    "Yahoo! is a company",
    '"Is it safe?" he asked',
    "Approx. 5 of them",
    "Smith et al. Report gains",
    "Apple Inc. Chief Tim Cook spoke",
    "As Fig. 2 shows, vs. John B. Rivals lost",
    "Der Vertrag endet am 3. März und z. B. nicht früher",
    "Das gilt ab dem 2. Januar, d. h. sofort, gem. Art. 5 Abs. 2",
    "M. Dupont habite ici, p. ex. près de la gare",
    "El Sr. García y la Dra. Ruiz viven en EE. UU. desde entonces",
    "The file is called a.b.c and .env",
    "It is 3.14. or so",
    "「行く。」と言った",
    "A soft\nline break stays inside",
    "Up to 5 mg.\nor less",
    "Ratio 1:2, and so on; never more",
    "one . . . two",
    ":( That is all",
    "Tours start at 10 a.m. Saturdays and at 2 p.m. Pacific",
    "The shop shuts at 8 p.m. (Sundays at 6)",
    "Use form No. K-7 under Art. XII and App. C",
    "Laut Nr. B12 und Abb. D gilt das",
    "Her Op. 12 and J. Doe et al. (1998) agree",
    "It is 6 ft. 2 in. high",
    "La visita dura aprox. 40 minutos",
    "Der Antrag ist bis zum 15. 11. 2025 zu stellen",
    "Der Antrag ging am 2. Dez. 2025 ein",
    "Vi har t.ex. Uppsala, kl. 9 till 17",
    "खुराक २५० मि.ली. है और डॉ. वर्मा ने रु. 90 लिए",
    "ตั้งแต่ พ.ศ. 2540 จนถึงวันนี้",
    "重さは２．５キロ",
    "入場料（大人800円。子供無料。）は必要",
    "「閉館です。」と書いてある",
    "“我们九点开门。”经理说",
    '"문을 닫았습니다."라고 했다',
    "»Das gilt nicht.«, sagte er",
    "The dose is 2.5 [4] mg and .5 more",
]

CUT = [
    "It costs $5.| That is cheap.",
    "Upgrade to v2.| Then restart.",
    "Yes.| $5,000.",
    "Is it safe?| Yes!| It is.",
    "Is it?!| Yes.",
    "He lives in the U.S.| The taxes are high.",
    "It closes at 5 p.m.| It opens at 9 a.m.| On Sunday it is closed.",
    "Bring pens, paper, etc.| The rest is provided.",
    "It was sold to Apple Inc.| The price is unknown.",
    "Take vitamin C.| It helps.",
    "I said no.| Then I left.",
    "Well...| The end.",
    "It is so.[3]| Next.[4][5]| End.",
    "It is so. [3]| Next. [1, 2]| [The third] one.",
    "It is so. [[1]](https://a.b/c.d)| Next.",
    "It is so. [doc 2]| Next. 【4†source】| End.",
    "It is so. [kb-2214]| Next. (pricing.pdf).| End.",
    "It is so. (Source: Guided tours)| Next. (see document 2)| End.<sup>3</sup>| More.",
    "It is so. [0b9f6c1e-8a34-4d0e-9a57-3c1f0e6d2b11]| Next.| [Prices](https://a.b/c) say more.",
    "It is so. [Prices](https://a.b/c)",
    "Do this.| (2) Do that.| (See below.)| Then go.| [Note] Done.",
    "It is so.¹| Next.²³| End.",
    'He said "Go."| She went.',
    "(It is so.)| Next.",
    "**Note.**| Next.",
    "*It is so.*| `Next.`| End.",
    "He left.| (She stayed.)| They met.",
    "It holds. (see p. 3).| Next.",
    "これは文です。|次の文です！|本当？|はい。",
    "今天很好。 |明天也好。",
    "価格は５０円です．|次。",
    "「行く。」|彼は言った。",
    "यह वाक्य है।| दूसरा वाक्य है॥| अंत",
    "هل هذا آمن؟| نعم.| انتهى",
    "یہ جملہ ہے۔| دوسرا",
    "ነው።| ሁለት",
    "First.\n\n|Second",
    "No full stop\n\n|Second",
    "First.\r\n\r\n|Second.\r\n|Third",
    "In 2020.| The next year.",
    "Buy 2 kg of no. 5.| Pay.",
    "Do this.| 1. Buy milk.| 2. Drink it.",
    "Il coûte 5 €.| C'est peu.",
    "¿Es seguro?| ¡Sí!| Muy bien.",
    "It ends. - Next one. - Third.".replace(". - ", ".| - "),
    "Это так.| Это всё.",
    "The gate shuts at 8:15 p.m.| Alder Court has its own gate.",
    "Rooms are free from 2 a.m.| Guests pay nothing.",
    "Take plan C.| Travellers like it.| Vitamin D.| Adults need it.",
    "She said no.| Nobody asked.| It is Ludwig II.| He built it.",
    "It weighs 2.5.[1]| It fell by 30 %.[2][3]| In 7. [4]",
    "It is free.| iPads cost more.| eBay takes 9 %.",
    "»Das gilt nicht.«| Er ging.",
    "Elle dit : « C'est fermé. »| Nous partons.",
    "Dijo: «Está cerrado.»| Nos fuimos.",
    "入館は無料です。|「明日は休館です。」|館長の話です。",
    "门票三十元（含税。不含餐）。|儿童免费。|“走吧。”|问题很多。",
    "문을 닫았습니다.|내일 엽니다.| 무료입니다.",
    "মূল্য ৫০ টাকা।| ছাড় নেই।",
    "Մուտքն անվճար է։| Բաց է։",
    "ᱱᱚᱶᱟ ᱢᱮᱱᱟᱜ᱾| ᱫᱚᱥᱟᱨ",
    "ဆိုင်ပိတ်သည်။| မနက်ဖြန်ဖွင့်သည်။",
    "The price (100 EUR. It is not closed" + " and goes on" * 20 + ".| Next.",
]


def cut(text: str, size: int) -> list[str]:
    segmenter = Segmenter()
    segments = [s for i in range(0, len(text), size) for s in segmenter.feed(text[i : i + size])]
    segments += segmenter.finish()
    assert all(s.kind is SegmentKind.SENTENCE for s in segments)
    return [s.text for s in segments]


@pytest.mark.parametrize("text", KEPT_TOGETHER)
def test_is_one_sentence(text: str) -> None:
    assert cut(text, 1) == [text]
    assert cut(text, len(text)) == [text]


@pytest.mark.parametrize("marked", CUT)
def test_is_cut_where_marked(marked: str) -> None:
    """White space behind a sentence belongs to it, so a mark stands before the space."""
    text = marked.replace("|", "")
    expected = [part for part in marked.split("|") if part]
    pieces = cut(text, 1)
    assert [p.strip() for p in pieces] == [p.strip() for p in expected]
    assert "".join(pieces) == text
    assert not any(p[0].isspace() for p in pieces)


@pytest.mark.parametrize("marked", [*KEPT_TOGETHER, *CUT])
def test_documents_end_sentences_as_answers_do(marked: str) -> None:
    """On one line: what a line break means is another matter for each."""
    text = marked.replace("|", "")
    if "\n" not in text:
        spans = zip(*sentence_spans(text), strict=True)
        assert [text[a:b] for a, b in spans] == [piece.strip() for piece in cut(text, len(text))]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("It costs $5. T", 13),
        ("これは文です。次", 7),
        ("Is it? Y", 7),
        ("First\n\n", 7),
        ("He met Dr. Smith. T", 18),
        ("It closes at 5 p.m. The d", 24),
        ("It is so. [3] N", 14),
        ("- item\n", 7),
        ("# Heading\n", 10),
        ("| a | b |\n| c", 13),
    ],
)
def test_is_final_with_the_character_that_decides(text: str, needed: int) -> None:
    """Fed one by one, the first segment comes with the character at ``needed`` at the latest."""
    segmenter = Segmenter()
    came = next(i for i, c in enumerate(text) if segmenter.feed(c))
    assert came <= needed
