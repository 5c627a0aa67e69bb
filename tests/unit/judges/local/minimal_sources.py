"""The sources that the minimal pairs are about."""

from __future__ import annotations

from typing import Final

SOURCES: Final = {
    "leaflet": """Loratadine 10 mg tablets. Adults and children over 6 years: take one tablet once a
day with a glass of water. Do not exceed the stated dose. Do not use this medicine if you are
allergic to loratadine or to any of the other ingredients. You can drive after taking the tablets
unless you feel drowsy. Tell your doctor before you take this medicine if you have severe liver
disease. Alcohol does not increase the effect of this medicine. Stop taking the tablets 48 hours
before any skin test. Keep the tablets in a dry place. Each pack contains 30 tablets.""",
    "prices": """Harbour Gym prices. The Standard membership costs £35 per month and the Plus
membership £52 per month. There is a joining fee of £20, which is waived for students. Members may
bring two guests per month free of charge. Towels can be hired for £1.50 each. Lockers are free,
but you must bring your own padlock. Group classes are included in the Plus membership only.
Members can freeze their membership for up to three months a year. Personal training is charged
separately. Parking behind the building is free for members for two hours.""",
    "travel": """Staff travel rules. All flights must be booked through the travel portal. Staff may
not book first class under any circumstances. Rail tickets are booked in second class, except for
journeys of more than four hours. Hotel breakfast is reimbursed, minibar charges are not. Receipts
are required for every expense above €25. Claims must be filed by the tenth day of the following
month. Private cars may be used with the written consent of the line manager, at a rate of €0.30
per kilometre. Trips outside Europe have to be approved by Helena Brandt.""",
    "employment": """Employment contract. The employee starts work on 1 September 2025 as a laboratory
technician in Utrecht. The probationary period is two months. The weekly working time is 36 hours,
spread over four days. The gross salary is EUR 3,150 per month, paid on the 25th of each month.
The employee is entitled to 27 days of holiday a year. Overtime is not paid but compensated with
time off. The employee may not work for a competitor during the employment. Both parties may
terminate the contract with a notice period of six weeks. The employer pays half of the pension
contribution.""",
    "insurance": """Household insurance terms. The policy covers fire, storm and burst pipes. Damage
caused by flooding or earthquakes is excluded. The excess is $250 for every claim. Jewellery is
insured up to a total of $5,000. Bicycles are covered only if they are locked. Claims must be
reported to the insurer within seven days of the damage. The insurer pays the repair directly to
the contractor. The policy renews automatically unless it is cancelled one month before the end of
the term. Tenants need no proof of ownership for items worth less than $100.""",
    "support": """How to set up the thermostat. Switch off the power at the fuse box before you remove
the old thermostat. The thermostat connects to 2.4 GHz networks only; it does not work on 5 GHz
networks. Press and hold the dial for five seconds to enter pairing mode. The light blinks blue
while the device is pairing and turns green once it is connected. You can control up to eight
devices from one account. Guests cannot change the schedule. Software updates are installed
automatically at night. If pairing fails, restart your router and try again. Batteries are not
required.""",
    "manual": """Pressure cooker manual. Fill the pot at most two-thirds full. Never open the lid
while the pot is under pressure. Use the cooker on gas, electric and induction hobs; do not put it
in the oven. Clean the valve by hand after each use; do not wash the lid or the valve in the
dishwasher. The pot holds 6 litres and weighs 2.8 kg. Replace the sealing ring every twelve
months. Children must not use the cooker. Beans are cooked for 25 minutes and potatoes for 12
minutes.""",
    "hr": """Remote work policy. Employees may work from home up to three days a week. Tuesday is
an office day for everybody. The company provides a laptop and a monitor; desks and chairs are not
provided. Working from abroad is allowed for at most 20 working days a year and must be approved
by HR in advance. Internet costs are not reimbursed. All employees have to complete the security
training by 31 January. Interns may not work remotely during their first month. Core hours are
from 10 a.m. to 3 p.m. Some teams have additional office days.""",
    "bank": """Account fees of Linden Bank. The Classic account costs €4.90 a month. It is free for
customers under 28. Cash withdrawals at Linden Bank machines are free; withdrawals at other banks
cost €3.50 each. Transfers within the euro area are free of charge. A replacement card costs €12.
Overdrafts bear interest of 11.2% a year. Paper statements are sent on request and cost €1 each.
The account can be closed at any time without notice. Deposits are protected up to €100,000.""",
    "event": """Riverside Book Fair. The fair takes place from 12 to 15 June 2026 in the Old Customs
House. The doors open at 10:00 and close at 19:00. Admission is €9 for adults; children under 12
get in free. The opening speech is given by Amara Okafor on Friday at 11:00. Tomas Lindqvist reads
from his new novel on Saturday at 16:30. Dogs are not allowed in the hall. Forty-two publishers
from nine countries take part. Food is sold in the courtyard. The workshops are held in the
library, and registration is required for all of them.""",
}
