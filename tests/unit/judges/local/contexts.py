"""What the cases of the local judge are checked against: one context of each kind it is deployed for."""

from __future__ import annotations

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity
from guardrail.evidence.index import EvidenceIndex

LEAFLET = """Ibuprofen 400 mg tablets. Adults and children over 12 years: take one tablet every 6 to 8
hours, with or after food. Do not take more than three tablets (1,200 mg) in 24 hours. Do not give
to children under 12 years. Do not take this medicine if you are in the last three months of
pregnancy. Store below 25 °C. If you forget a dose, do not take a double dose to make up for it.
Common side effects include indigestion and heartburn. Call the helpline on 0800 555 0199 if you
have taken too much. Keep the tablets out of the reach of children."""

PRICING = """Northwind Cloud pricing. Basic costs $29 per month and includes 5 users. Pro costs $49 per
month and includes 20 users. Enterprise pricing is available on request. Annual billing saves 20%.
All plans have a 14-day free trial; no credit card is required. Storage is 100 GB on Basic and 1 TB
on Pro. Refunds are available within 30 days of purchase. Support for Basic is by email only."""

TRAVEL = """Travel policy. Employees may book economy class for flights under six hours and business
class for flights over six hours. Hotel stays are reimbursed up to €180 per night in capital cities
and €120 per night elsewhere. Expense reports must be submitted within 30 days of returning. Alcohol
is not reimbursed. Meals are covered by a daily allowance of €45. Trips over $5,000 need approval by
the finance director, Maria Keller."""

CONTRACT = """Section 7. Either party may terminate this agreement with ninety (90) days' written
notice. The supplier shall deliver the goods no later than 15 March 2026. Late payments bear
interest of 1.5% per month. The customer indemnifies the supplier against third-party claims.
Liability is limited to EUR 2,000,000. This agreement is governed by the laws of Ireland. The
agreement was signed by Aveline GmbH and Borealis Ltd on 3 March 2021."""

SUPPORT = """To reset the router, hold the reset button for 10 seconds until the light turns red. Do
not unplug the router during a firmware update. The default address is 192.168.1.1. The warranty
lasts two years from the date of purchase and does not cover water damage. Version 4.2 added support
for WPA3. The store opens at 9:00 and closes at 17:30."""

CONTEXTS = {
    "leaflet": LEAFLET,
    "pricing": PRICING,
    "travel": TRAVEL,
    "contract": CONTRACT,
    "support": SUPPORT,
}


def index_of(contexts: dict[str, str]) -> EvidenceIndex:
    """The contexts, by id, ready for a judge."""
    return EvidenceIndex([Context(id=name, text=text) for name, text in contexts.items()])


def claim_of(text: str, lead_in: str = "") -> Claim:
    """A claim with this text."""
    return Claim(0, 0, text, 0, len(text), Severity.NORMAL, lead_in=lead_in)
