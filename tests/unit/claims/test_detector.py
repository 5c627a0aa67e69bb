"""What needs checking and what does not. A missed claim is the dangerous error; these tables guard it."""

from __future__ import annotations

import pytest

from guardrail.claims.detector import Statement, classify
from guardrail.events import SegmentKind

CLAIMS = [
    "Take 500 mg.",
    "It costs $50.",
    "$5,000.",
    "Paris.",
    "Never.",
    "12.",
    "Up to 20 %.",
    "Berlin is the capital of Germany.",
    "The documents are kept for ten years.",
    "I don't know the exact price, but it costs $50.",
    "I don't know the exact price, it costs $50.",
    "I don't know, maybe $50.",
    "I'm not sure, the drug is safe for children.",
    "I couldn't find the price; however, delivery is free.",
    "The documents do not mention side effects, so it is safe.",
    "The documents do not mention side effects other than nausea.",
    "The documents don't say, although it usually takes three days.",
    "I cannot recommend more than 4 g.",
    "Unfortunately, the warranty does not cover water damage.",
    "There is no information desk in the lobby.",
    "The policy does not include flood damage.",
    "No refunds are given after 30 days.",
    "There are no side effects.",
    "Hello, the dose is 5 mg.",
    "Sure, you can take 4 g a day.",
    "Sure, aspirin is safe.",
    "Yes, it costs $50.",
    "Yes, aspirin is safe.",
    "No, the contract ends in May.",
    "Feel free to contact us at support@example.com.",
    "Please call 0800 123 456 if you have questions.",
    "If you have a fever, let me know that 39 °C is dangerous.",
    "Did you know that aspirin thins the blood?",
    "It costs $50, right?",
    "The drug is safe, isn't it?",
    "Is it safe, it costs $50, right?",
    "Here is the price: $50.",
    "Here's what I found: the warranty is void.",
    "According to the leaflet, the dose is one tablet.",
    "Note: do not drive.",
    "Important: alcohol is forbidden.",
    "The side effects include nausea and:",
    "The maximum of 4 tablets includes:",
    "Aspirin is safe for children for these reasons:",
    "Thanks to its low price, it sells well.",
    "It depends on the weight: 5 mg per kg.",
    "See [the price list](https://example.com/p), which says it is free.",
    "https://example.com costs nothing.",
    "[Take 50 mg daily](https://example.com)",
    "I don't know, but see [the price is 50 euros](https://example.com).",
    "Das kostet 50 Euro.",
    "Ich weiß den Preis nicht, aber es kostet 50 Euro.",
    "Je ne sais pas, mais c'est gratuit.",
    "No sé el precio, pero cuesta 50 euros.",
    "薬は安全です。",
    "Отпуск длится 28 дней.",
]

NOT_CLAIMS = [
    ("Hello!", Statement.GREETING),
    ("Hi there,", Statement.GREETING),
    ("Hello Anna!", Statement.GREETING),
    ("Good morning, Mr. Smith!", Statement.GREETING),
    ("Thank you for your question.", Statement.GREETING),
    ("Great question!", Statement.GREETING),
    ("Sure, happy to help!", Statement.GREETING),
    ("You're welcome!", Statement.GREETING),
    ("I'm sorry for the inconvenience.", Statement.GREETING),
    ("Guten Tag!", Statement.GREETING),
    ("Bonjour !", Statement.GREETING),
    ("¡Hola!", Statement.GREETING),
    ("你好！", Statement.GREETING),
    ("Yes.", Statement.ANSWER),
    ("**No.**", Statement.ANSWER),
    ("Yes, you can.", Statement.ANSWER),
    ("That's correct!", Statement.ANSWER),
    ("Ja.", Statement.ANSWER),
    ("It depends.", Statement.HEDGE),
    ("Results may vary.", Statement.HEDGE),
    ("It's hard to say.", Statement.HEDGE),
    ("Das kommt darauf an.", Statement.HEDGE),
    ("Is there anything else?", Statement.QUESTION),
    ("Would you like me to look it up?", Statement.QUESTION),
    ("What does the policy say?", Statement.QUESTION),
    ("Anything else?", Statement.QUESTION),
    ("¿Necesita algo más?", Statement.QUESTION),
    ("Möchten Sie mehr wissen?", Statement.QUESTION),
    ("Voulez-vous en savoir plus ?", Statement.QUESTION),
    ("それは安全ですか？", Statement.QUESTION),
    ("Let me know if you have any questions.", Statement.OFFER),
    ("If you have any other questions, feel free to ask!", Statement.OFFER),
    ("I'd be happy to help with that.", Statement.OFFER),
    ("I hope this helps!", Statement.OFFER),
    ("Hope this helps!", Statement.OFFER),
    ("Please provide more details.", Statement.OFFER),
    ("Don't hesitate to reach out.", Statement.OFFER),
    ("I don't know.", Statement.ABSTENTION),
    ("I don’t know the answer to that.", Statement.ABSTENTION),
    ("I'm sorry, but I don't have enough information to answer.", Statement.ABSTENTION),
    ("Sorry, I could not find that in the documents.", Statement.ABSTENTION),
    ("Unfortunately, the provided documents do not mention the price.", Statement.ABSTENTION),
    ("The documents do not say what the price was in 2020.", Statement.ABSTENTION),
    (
        "The context does not specify a dose for children, pregnant women, or the elderly.",
        Statement.ABSTENTION,
    ),
    ("I couldn't find this in the sources, so I can't answer.", Statement.ABSTENTION),
    ("I don't know, but I can help you find out.", Statement.ABSTENTION),
    ("There is no information about refunds in the provided documents.", Statement.ABSTENTION),
    ("It is not specified in the documents.", Statement.ABSTENTION),
    ("I'm not sure.", Statement.ABSTENTION),
    ("Das weiß ich leider nicht.", Statement.ABSTENTION),
    ("Ich konnte dazu in den Dokumenten nichts finden.", Statement.ABSTENTION),
    ("Die vorliegenden Dokumente enthalten dazu keine Angaben.", Statement.ABSTENTION),
    ("Je ne sais pas.", Statement.ABSTENTION),
    ("Les documents ne mentionnent pas le prix.", Statement.ABSTENTION),
    ("Lo siento, no tengo información sobre eso.", Statement.ABSTENTION),
    ("Los documentos no mencionan el precio.", Statement.ABSTENTION),
    ("Non lo so.", Statement.ABSTENTION),
    ("我不知道。", Statement.ABSTENTION),
    ("Here is a summary:", Statement.LEAD_IN),
    ("Here are the 3 steps:", Statement.LEAD_IN),
    ("According to the documents:", Statement.LEAD_IN),
    ("Based on the documents, here's what I found about the **fees**:", Statement.LEAD_IN),
    ("**Side effects:**", Statement.LEAD_IN),
    ("Common side effects include:", Statement.LEAD_IN),
    ("To set it up, you should follow these key steps:", Statement.LEAD_IN),
    ("This can be done by:", Statement.LEAD_IN),
    ("Hier ist eine Zusammenfassung:", Statement.LEAD_IN),
    ("Below is a summary of the policy.", Statement.META),
    ("In summary,", Statement.META),
    ("[3]", Statement.CITATION),
    ("[1], [2](https://example.com)", Statement.CITATION),
    ("https://example.com/a?b=c", Statement.CITATION),
    ("[Price list](https://example.com)", Statement.CITATION),
    ("Source: [Price list](https://example.com)", Statement.CITATION),
    ("---", Statement.NOTHING),
    ("👍", Statement.NOTHING),
    ("", Statement.NOTHING),
]


@pytest.mark.parametrize("text", CLAIMS)
def test_is_a_claim(text: str) -> None:
    assert classify(text, SegmentKind.SENTENCE) is Statement.CLAIM


@pytest.mark.parametrize(("text", "statement"), NOT_CLAIMS)
def test_needs_no_check(text: str, statement: Statement) -> None:
    assert classify(text, SegmentKind.SENTENCE) is statement


def test_structure_and_code_hold_no_claims() -> None:
    assert classify("Dosage: 500 mg", SegmentKind.HEADING) is Statement.STRUCTURE
    assert classify("Plan | Price", SegmentKind.TABLE_ROW, header=True) is Statement.STRUCTURE
    assert classify("---|---", SegmentKind.TABLE_ROW) is Statement.NOTHING
    assert classify("```\nprice = 50\n```", SegmentKind.CODE) is Statement.CODE


def test_rows_and_items_are_claims() -> None:
    assert classify("Basic | $10", SegmentKind.TABLE_ROW) is Statement.CLAIM
    assert classify("Yes | No", SegmentKind.TABLE_ROW) is Statement.CLAIM
    assert classify("free delivery", SegmentKind.LIST_ITEM) is Statement.CLAIM
