"""Minimal pairs that nothing was mended by: the judge's figures on them are as on texts it has not seen."""

from __future__ import annotations

from typing import Final

from tests.unit.judges.local.minimal_pairs import Pair

UNSEEN_SOURCES: Final = {
    "library": """Using the city library. A library card is free for residents; visitors pay $15 per
year. You can borrow up to ten books and four films at the same time. Books are lent for four
weeks, films for one week. Loans can be renewed twice unless another reader has reserved the item.
Reference works may not be taken out of the building. The reading room is open until 10 p.m. on
weekdays. Eating is forbidden in the reading room. The library was designed by Ingrid Solheim.""",
    "rental": """Rental agreement. The monthly rent is $1,450 and includes water and heating, but not
electricity. The deposit amounts to two months' rent and is returned within 30 days of moving out.
Small pets are permitted; dogs need the written permission of the landlord. The tenant must not
sublet the flat. Smoking is prohibited in the stairwell. Repairs up to $80 are paid by the tenant.
The lease begins on May 1, 2025 and ends on April 30, 2027.""",
    "vaccine": """Vaccination clinic. The flu vaccine is recommended for everyone over 60 years.
Children receive two doses four weeks apart; adults receive one dose. The vaccination does not
protect against colds. People with a fever should not be vaccinated. The shot is paid for by all
health insurers. Appointments are not needed on Wednesdays. Stay in the waiting area for 15
minutes after the shot. The clinic is led by Dr. Ruth Adeyemi.""",
    "licence": """Software licence. The licence is valid for five devices of one household. Commercial
use is not permitted. The Pro edition costs $89, the Home edition $39. Updates are free for two
years; after that they cost $19 a year. Customers may return the software within 14 days, provided
that it has not been activated. The program runs on Windows 11 and macOS 14 or later. Linux is not
supported. Technical support is given by email and chat.""",
    "ferry": """Ferry to Skarn. The crossing takes 90 minutes. Ferries leave at 7:30, 12:00 and
18:15 every day; on Sundays there is no early ferry. A single ticket costs 24 euros. Bicycles are
carried free of charge, motorcycles cost 12 euros. Passengers must be on board 20 minutes before
departure. Dogs have to wear a muzzle. Hot meals are served on the upper deck only. Tickets can be
cancelled until two hours before departure. The captain may refuse drunk passengers.""",
}


def _p(source: str, detail: str, faithful: str, wrong: str) -> Pair:
    return Pair(source, detail, faithful, wrong)


UNSEEN_PAIRS: Final = (
    _p(
        "library",
        "free or paid",
        "Residents get a library card for free.",
        "Visitors get a library card for free.",
    ),
    _p(
        "library", "number word", "You can borrow ten books at a time.", "You can borrow six books at a time."
    ),
    _p("library", "swapped value", "Films are lent for one week.", "Films are lent for four weeks."),
    _p("library", "frequency", "Loans can be renewed twice.", "Loans can be renewed three times."),
    _p(
        "library",
        "permission",
        "Reference works must stay in the building.",
        "Reference works may be taken out of the building.",
    ),
    _p(
        "library",
        "time",
        "On weekdays the reading room is open until 10 pm.",
        "On weekdays the reading room is open until 8 pm.",
    ),
    _p("library", "permission", "You may not eat in the reading room.", "You may eat in the reading room."),
    _p("library", "name", "Ingrid Solheim designed the library.", "Ingrid Bergman designed the library."),
    _p(
        "rental",
        "coverage",
        "The rent includes water and heating.",
        "The rent includes water and electricity.",
    ),
    _p("rental", "price", "The rent is $1,450 a month.", "The rent is $1,540 a month."),
    _p("rental", "number word", "The deposit is two months' rent.", "The deposit is three months' rent."),
    _p("rental", "negation", "Small pets are allowed.", "Small pets are not allowed."),
    _p("rental", "permission", "The tenant may not sublet the flat.", "The tenant may sublet the flat."),
    _p(
        "rental",
        "passive",
        "The tenant pays for repairs up to $80.",
        "The landlord pays for repairs up to $80.",
    ),
    _p("rental", "date", "The lease ends on April 30, 2027.", "The lease ends on April 30, 2026."),
    _p(
        "rental",
        "addition",
        "Smoking is prohibited in the stairwell.",
        "Smoking and cooking are prohibited in the stairwell.",
    ),
    _p(
        "vaccine",
        "age",
        "The flu vaccine is recommended for everyone over 60.",
        "The flu vaccine is recommended for everyone over 50.",
    ),
    _p(
        "vaccine",
        "number word",
        "Children get two doses four weeks apart.",
        "Children get three doses four weeks apart.",
    ),
    _p("vaccine", "number word", "Adults receive one dose.", "Adults receive two doses."),
    _p(
        "vaccine",
        "negation",
        "The vaccination doesn't protect against colds.",
        "The vaccination protects against colds.",
    ),
    _p(
        "vaccine",
        "permission",
        "People with a fever should not be vaccinated.",
        "People with a fever can be vaccinated.",
    ),
    _p(
        "vaccine",
        "quantifier",
        "All health insurers pay for the shot.",
        "Some health insurers pay for the shot, others don't.",
    ),
    _p(
        "vaccine",
        "negation",
        "You don't need an appointment on Wednesdays.",
        "You need an appointment on Wednesdays.",
    ),
    _p("vaccine", "duration", "Wait for 15 minutes after the shot.", "Wait for 30 minutes after the shot."),
    _p(
        "licence",
        "number word",
        "The licence is valid for five devices.",
        "The licence is valid for three devices.",
    ),
    _p("licence", "permission", "Commercial use is forbidden.", "Commercial use is allowed."),
    _p("licence", "swapped price", "The Home edition costs $39.", "The Home edition costs $89."),
    _p("licence", "free or paid", "For two years updates are free.", "Updates always cost $19 a year."),
    _p(
        "licence",
        "condition",
        "You can return the software within 14 days if it has not been activated.",
        "You can return the software within 14 days even if it has been activated.",
    ),
    _p(
        "licence",
        "compatibility",
        "The program runs on Windows 11 and macOS 14.",
        "The program runs on Windows 11 and Linux.",
    ),
    _p(
        "licence",
        "addition",
        "Technical support is available by email and chat.",
        "Technical support is available by email, chat and telephone.",
    ),
    _p("ferry", "duration", "The crossing takes an hour and a half.", "The crossing takes two hours."),
    _p("ferry", "time", "The last ferry leaves at 18:15.", "The last ferry leaves at 19:15."),
    _p("ferry", "free or paid", "Bicycles travel free of charge.", "Motorcycles travel free of charge."),
    _p("ferry", "unit", "A single ticket is 24 euros.", "A single ticket is 24 dollars."),
    _p(
        "ferry",
        "duration",
        "Passengers need to be on board 20 minutes before departure.",
        "Passengers need to be on board 10 minutes before departure.",
    ),
    _p("ferry", "obligation", "Dogs must wear a muzzle.", "Dogs need not wear a muzzle."),
    _p(
        "ferry", "place", "Hot meals are served on the upper deck.", "Hot meals are served on the lower deck."
    ),
    _p(
        "ferry",
        "number word",
        "You can cancel a ticket until two hours before departure.",
        "You can cancel a ticket until four hours before departure.",
    ),
    _p("ferry", "negation", "There's no early ferry on Sundays.", "There's an early ferry on Sundays."),
)
