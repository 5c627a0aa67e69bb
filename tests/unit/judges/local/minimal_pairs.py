"""Minimal pairs: a faithful rewording of what a source says, and the same with one detail wrong.

Written from the sources alone, before looking at what the judge makes of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Pair(NamedTuple):
    """``faithful`` and ``wrong`` differ in one detail, of the sort ``detail``."""

    source: str
    detail: str
    faithful: str
    wrong: str


def _p(source: str, detail: str, faithful: str, wrong: str) -> Pair:
    return Pair(source, detail, faithful, wrong)


PAIRS: Final = (
    # leaflet
    _p("leaflet", "number word", "Adults take one tablet once a day.", "Adults take two tablets once a day."),
    _p(
        "leaflet",
        "frequency",
        "Take one tablet once a day with water.",
        "Take one tablet twice a day with water.",
    ),
    _p(
        "leaflet",
        "age",
        "Adults and children over 6 can take one tablet.",
        "Adults and children over 2 can take one tablet.",
    ),
    _p("leaflet", "unit", "Each tablet has 10 mg of loratadine.", "Each tablet has 10 g of loratadine."),
    _p(
        "leaflet",
        "permission",
        "You can drive after taking the tablets if you don't feel drowsy.",
        "You can drive after taking the tablets even if you feel drowsy.",
    ),
    _p(
        "leaflet",
        "negation",
        "Alcohol doesn't increase the effect of the medicine.",
        "Alcohol increases the effect of the medicine.",
    ),
    _p(
        "leaflet",
        "duration",
        "Stop taking the tablets 48 hours before a skin test.",
        "Stop taking the tablets 24 hours before a skin test.",
    ),
    _p("leaflet", "number digit", "A pack contains 30 tablets.", "A pack contains 60 tablets."),
    _p(
        "leaflet",
        "negation",
        "Do not use it if you are allergic to loratadine.",
        "You can use it if you are allergic to loratadine.",
    ),
    # prices
    _p("prices", "price", "Standard membership is £35 a month.", "Standard membership is £25 a month."),
    _p("prices", "swapped price", "Plus membership is £52 a month.", "Plus membership is £35 a month."),
    _p(
        "prices",
        "number word",
        "Members may bring two guests a month free of charge.",
        "Members may bring five guests a month free of charge.",
    ),
    _p("prices", "free or paid", "You can hire towels for £1.50 each.", "Towels are free."),
    _p("prices", "free or paid", "Lockers are free.", "Lockers can be rented for a fee."),
    _p(
        "prices",
        "quantifier",
        "Group classes are only included in the Plus membership.",
        "Group classes are included in all memberships.",
    ),
    _p(
        "prices",
        "duration",
        "A membership can be frozen for up to three months a year.",
        "A membership can be frozen for up to six months a year.",
    ),
    _p(
        "prices",
        "free or paid",
        "There is a separate charge for personal training.",
        "Personal training is free.",
    ),
    _p(
        "prices",
        "addition",
        "Members can park for free behind the building for two hours.",
        "Members can park for free behind the building for two hours and get a free car wash.",
    ),
    _p(
        "prices",
        "who",
        "The joining fee is waived for students.",
        "The joining fee is waived for pensioners.",
    ),
    # travel
    _p("travel", "permission", "Staff may not book first class.", "Staff may book first class."),
    _p(
        "travel",
        "quantifier",
        "All flights must be booked through the travel portal.",
        "Some flights must be booked through the travel portal.",
    ),
    _p("travel", "negation", "Minibar charges are not reimbursed.", "Minibar charges are reimbursed."),
    _p(
        "travel",
        "price",
        "You need receipts for every expense above €25.",
        "You need receipts for every expense above €50.",
    ),
    _p(
        "travel",
        "ordinal",
        "Claims must be filed by the tenth day of the following month.",
        "Claims must be filed by the fifth day of the following month.",
    ),
    _p(
        "travel",
        "rate",
        "The rate for private cars is €0.30 per kilometre.",
        "The rate for private cars is €0.40 per kilometre.",
    ),
    _p(
        "travel",
        "name",
        "Trips outside Europe need the approval of Helena Brandt.",
        "Trips outside Europe need the approval of Marco Silva.",
    ),
    _p(
        "travel",
        "form",
        "The line manager has to give written consent for the use of private cars.",
        "The line manager has to give oral consent for the use of private cars.",
    ),
    # employment
    _p(
        "employment",
        "date",
        "The employee starts on 1 September 2025.",
        "The employee starts on 1 October 2025.",
    ),
    _p(
        "employment",
        "duration",
        "The probationary period lasts two months.",
        "The probationary period lasts six months.",
    ),
    _p(
        "employment",
        "price",
        "The gross salary is 3150 euros a month.",
        "The gross salary is 3510 euros a month.",
    ),
    _p(
        "employment",
        "number word",
        "The 36 hours a week are spread over four days.",
        "The 36 hours a week are spread over five days.",
    ),
    _p("employment", "negation", "Overtime isn't paid but compensated with time off.", "Overtime is paid."),
    _p(
        "employment",
        "permission",
        "The employee may not work for a competitor.",
        "The employee may work for a competitor.",
    ),
    _p(
        "employment",
        "quantity",
        "The employer pays half the pension contribution.",
        "The employer pays the whole pension contribution.",
    ),
    _p(
        "employment",
        "name",
        "The employee works as a laboratory technician in Utrecht.",
        "The employee works as a laboratory technician in Rotterdam.",
    ),
    _p(
        "employment",
        "number digit",
        "The employee has 27 days of holiday a year.",
        "The employee has 30 days of holiday a year.",
    ),
    _p(
        "employment",
        "duration",
        "The notice period is six weeks for both parties.",
        "The notice period is four weeks for both parties.",
    ),
    # insurance
    _p(
        "insurance",
        "coverage",
        "Damage caused by flooding is excluded.",
        "Damage caused by flooding is covered.",
    ),
    _p(
        "insurance",
        "coverage",
        "The policy covers fire, storm and burst pipes.",
        "The policy covers fire, storm and flooding.",
    ),
    _p("insurance", "price", "The excess is $250 per claim.", "The excess is $150 per claim."),
    _p(
        "insurance",
        "condition",
        "Bicycles are only covered if they are locked.",
        "Bicycles are covered even if they are not locked.",
    ),
    _p(
        "insurance",
        "number word",
        "Claims have to be reported within seven days.",
        "Claims have to be reported within ten days.",
    ),
    _p(
        "insurance",
        "addition",
        "Jewellery is insured up to $5,000.",
        "Jewellery and paintings are insured up to $5,000.",
    ),
    _p(
        "insurance",
        "passive",
        "The contractor is paid directly by the insurer.",
        "The contractor is paid directly by the policyholder.",
    ),
    _p(
        "insurance",
        "negation",
        "The policy renews automatically unless it's cancelled.",
        "The policy does not renew automatically.",
    ),
    _p(
        "insurance",
        "negation",
        "Tenants don't need proof of ownership for items worth less than $100.",
        "Tenants need proof of ownership for items worth less than $100.",
    ),
    # support
    _p(
        "support",
        "order",
        "Switch off the power before you remove the old thermostat.",
        "Switch off the power after you remove the old thermostat.",
    ),
    _p(
        "support",
        "compatibility",
        "The thermostat does not work on 5 GHz networks.",
        "The thermostat works on 5 GHz networks.",
    ),
    _p(
        "support",
        "number word",
        "Hold the dial for five seconds to enter pairing mode.",
        "Hold the dial for ten seconds to enter pairing mode.",
    ),
    _p(
        "support",
        "colour",
        "The light turns green when it is connected.",
        "The light turns red when it is connected.",
    ),
    _p(
        "support",
        "number word",
        "One account can control up to eight devices.",
        "One account can control up to twelve devices.",
    ),
    _p("support", "permission", "Guests can't change the schedule.", "Guests can change the schedule."),
    _p(
        "support",
        "passive",
        "The device installs software updates automatically at night.",
        "You have to install software updates manually.",
    ),
    _p("support", "negation", "No batteries are required.", "Batteries are required."),
    # manual
    _p(
        "manual",
        "fraction",
        "Do not fill the pot more than two-thirds full.",
        "Do not fill the pot more than three-quarters full.",
    ),
    _p(
        "manual",
        "permission",
        "You should not put the cooker in the oven.",
        "You can put the cooker in the oven.",
    ),
    _p(
        "manual",
        "permission",
        "The lid must not be washed in the dishwasher.",
        "The lid can be washed in the dishwasher.",
    ),
    _p(
        "manual",
        "negation",
        "Never open the lid while the pot is under pressure.",
        "You can open the lid while the pot is under pressure.",
    ),
    _p("manual", "unit", "The pot holds 6 litres.", "The pot holds 6 gallons."),
    _p("manual", "swapped value", "Cook potatoes for 12 minutes.", "Cook potatoes for 25 minutes."),
    _p(
        "manual",
        "duration",
        "The sealing ring should be replaced every twelve months.",
        "The sealing ring should be replaced every six months.",
    ),
    _p("manual", "permission", "Children must not use the cooker.", "The cooker may be used by children."),
    _p(
        "manual",
        "addition",
        "It can be used on gas, electric and induction hobs.",
        "It can be used on gas, electric and induction hobs and on open campfires.",
    ),
    # hr
    _p(
        "hr",
        "number word",
        "Employees can work from home up to three days a week.",
        "Employees can work from home up to four days a week.",
    ),
    _p(
        "hr",
        "addition",
        "The company provides a laptop and a monitor.",
        "The company provides a laptop, a monitor and a headset.",
    ),
    _p("hr", "negation", "Desks and chairs are not provided.", "Desks and chairs are provided."),
    _p("hr", "weekday", "On Tuesday everybody is in the office.", "On Thursday everybody is in the office."),
    _p(
        "hr",
        "duration",
        "You can work from abroad for up to 20 working days a year.",
        "You can work from abroad for up to 30 working days a year.",
    ),
    _p("hr", "negation", "Internet costs aren't reimbursed.", "Internet costs are reimbursed."),
    _p(
        "hr",
        "date",
        "The security training must be completed by January 31.",
        "The security training must be completed by March 31.",
    ),
    _p("hr", "time", "Core hours are from 10 am to 3 pm.", "Core hours are from 9 am to 3 pm."),
    _p(
        "hr",
        "quantifier",
        "Some teams have additional office days.",
        "All teams have additional office days.",
    ),
    _p(
        "hr",
        "permission",
        "In their first month interns may not work remotely.",
        "In their first month interns may work remotely.",
    ),
    # bank
    _p(
        "bank",
        "price",
        "The Classic account costs €4.90 per month.",
        "The Classic account costs €9.40 per month.",
    ),
    _p(
        "bank",
        "free or paid",
        "Transfers in the euro area are free.",
        "Transfers in the euro area cost a fee.",
    ),
    _p(
        "bank",
        "free or paid",
        "Withdrawals at other banks cost €3.50.",
        "Withdrawals at other banks are free.",
    ),
    _p(
        "bank",
        "percent",
        "The interest on overdrafts is 11.2 percent a year.",
        "The interest on overdrafts is 12.1 percent a year.",
    ),
    _p(
        "bank",
        "age",
        "Customers under 28 don't pay for the Classic account.",
        "Customers under 35 don't pay for the Classic account.",
    ),
    _p("bank", "free or paid", "Paper statements cost €1 each.", "Paper statements are sent free of charge."),
    _p(
        "bank",
        "limit",
        "Deposits are protected up to 100,000 euros.",
        "Deposits are protected up to 1,000,000 euros.",
    ),
    _p(
        "bank",
        "with or without",
        "You can close the account at any time without notice.",
        "You can close the account at any time with one month's notice.",
    ),
    # event
    _p("event", "date", "The fair ends on 15 June 2026.", "The fair ends on 16 June 2026."),
    _p("event", "time", "The doors open at 10 am.", "The doors open at 9 am."),
    _p(
        "event", "name", "Amara Okafor gives the opening speech.", "Tomas Lindqvist gives the opening speech."
    ),
    _p(
        "event",
        "weekday",
        "Tomas Lindqvist reads on Saturday at 4:30 pm.",
        "Tomas Lindqvist reads on Sunday at 4:30 pm.",
    ),
    _p("event", "number word", "Forty-two publishers take part.", "Twenty-four publishers take part."),
    _p(
        "event",
        "number word",
        "The publishers come from nine countries.",
        "The publishers come from six countries.",
    ),
    _p("event", "permission", "Dogs aren't allowed in the hall.", "Dogs are allowed in the hall."),
    _p("event", "free or paid", "Children under 12 get in for free.", "Adults get in for free."),
    _p(
        "event",
        "place",
        "The workshops take place in the library.",
        "The workshops take place in the courtyard.",
    ),
    _p(
        "event",
        "quantifier",
        "All workshops require registration.",
        "None of the workshops require registration.",
    ),
)
