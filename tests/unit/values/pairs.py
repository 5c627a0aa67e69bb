"""Texts with one value each: (claim, source). Written for this project."""

from __future__ import annotations

AGREE: list[tuple[str, str]] = [
    # numerals and number words
    ("1,000", "1000"), ("1000", "1 000"), ("1 000", "one thousand"), ("one thousand", "1,000"), ("a thousand people", "1,000 people"),
    ("twenty-five", "25"), ("two hundred and five", "205"), ("a dozen", "12"), ("two dozen", "24"), ("a hundred", "100"),
    ("1'000'000", "1,000,000"), ("1.000.000", "1 million"), ("two and a half million", "2.5 million"), ("12 lakh", "1,200,000"),
    ("10k", "10,000"), ("5 million", "5,000,000"), ("half a million", "500,000"), ("1½", "1.5"), ("1 1/2", "1.5"),
    ("five", "5 apples"), ("1,00,000", "100000"), ("minus: -5", "value is -5"), ("zwölf", "12"), ("3 Mio.", "3,000,000"), ("deux", "2"),
    # European notation: any reading
    ("5.000,00 €", "€5,000"), ("1.500 people", "1,500 people"), ("3,5 kg", "3.5 kg"), ("1.234,56 €", "1,234.56 EUR"),
    # parts and percent
    ("50 %", "50 percent"), ("50 percent", "half"), ("half", "50%"), ("1/4", "a quarter of users"), ("25%", "1/4"), ("one in four", "25 %"),
    ("25 percent", "one in four"), ("three quarters", "75%"), ("two-thirds", "2/3"), ("3 out of 5", "60%"), ("12 per cent", "12 %"),
    ("20 Prozent", "20%"), ("33%", "a third of them"), ("100 basis points", "1 percentage point"), ("5 ‰", "0.5%"), ("12.5%", "12,5 %"),
    # how often
    ("twice a day", "2 times a day"), ("two times daily", "twice daily"), ("once daily", "once a day"), ("three times", "3x"),
    # money
    ("$5M", "5 million dollars"), ("5 million dollars", "US$ 5,000,000"), ("US$ 5,000,000", "$5M"), ("$50", "USD 50"), ("50 USD", "$50.00"),
    ("€20", "20 euros"), ("£1.2bn", "1.2 billion GBP"), ("50 cents", "$0.50"), ("99p", "£0.99"), ("CHF 30", "30 Swiss francs"), ("¥1,000", "1000 yen"),
    ("$1,299.99", "1299.99 dollars"), ("about $50", "$49.99"), ("A$50", "$50"), ("$5-$10", "between $5 and $10"), ("Rs. 500", "500 rupees"), ("$50 per month", "$50/month"),
    ("$10 monthly", "$10 a month"), ("$2.5k", "$2,500"), ("£50", "50 pounds"), ("-$20", "-20 dollars"), ("$5-10 million", "$5 million to $10 million"),
    # dates
    ("March 3rd, 2021", "2021-03-03"), ("2021-03-03", "3 March 2021"), ("3 March 2021", "03/03/2021"), ("03/04/2021", "3 April 2021"),
    ("March 4, 2021", "03/04/2021"), ("in 2021", "on 2021-03-03"), ("March 2021", "2021-03-03"), ("3 March", "March 3, 2021"), ("the 3rd of March 2021", "3.3.2021"),
    ("3. März 2021", "2021-03-03"), ("3 mars 2021", "3/3/2021"), ("3 de marzo de 2021", "2021-03-03"), ("Sept. 5, 2020", "5 September 2020"), ("Jan 5 2020", "2020/01/05"),
    ("the 1990s", "in 1995"), ("19th century", "in 1850"), ("Q3 2021", "August 2021"), ("third quarter of 2021", "Q3 2021"), ("on Monday", "2024-01-01"),
    ("FY2021", "in 2021"), ("44 BC", "44 BCE"), ("5/6/21", "2021-06-05"), ("Mondays", "on Monday"),
    # times
    ("3 PM", "15:00"), ("3:30 p.m.", "15:30"), ("15h30", "3:30 pm"), ("noon", "12:00"), ("midnight", "00:00"), ("9 Uhr", "9:00"), ("3 o'clock", "15:00"),
    ("9am", "09:00"), ("3 PM EST", "20:00 UTC"), ("12 a.m.", "0:00"),
    # units
    ("1 g", "1000 mg"), ("1 hour", "60 minutes"), ("2 weeks", "14 days"), ("1 year", "12 months"), ("90 minutes", "1.5 hours"), ("24 hours", "1 day"),
    ("about 1.6 km", "1 mile"), ("5 km", "5,000 m"), ("32 °F", "0 °C"), ("100 degrees Celsius", "212°F"), ("about 2.2 lb", "1 kg"), ("1 GB", "1000 MB"), ("70 kg", "154 lb"),
    ("500mg", "500 mg"), ("30-day", "30 days"), ("6 ft", "72 inches"), ("60 km/h", "60 km per hour"), ("5 ml", "1 teaspoon"), ("10 mcg", "10 µg"), ("1.5 l", "1500 ml"),
    ("5 mg/kg", "5 mg per kg"), ("two tablets", "2 tablets"), ("2 tablets", "take two"), ("30 working days", "30 business days"), ("100 km²", "100 square kilometres"),
    ("1 kWh", "1000 Wh"), ("200 mL", "0.2 litres"), ("a week: within a week", "7 days"), ("37.5 °C", "37,5 °C"),
    # rounding and limits
    ("about 3.1 million", "3,098,000"), ("around 100", "96"), ("nearly 5,000", "4,890"), ("over 3 million", "3,098,000"), ("more than 50", "52"), ("up to 10 mg", "10 mg"),
    ("at least 5", "5 or more"), ("3.14", "3.14159"), ("roughly half", "51%"), ("at most 20", "maximum of 20"), ("less than 100", "97"), ("3.1 million", "3,098,000"),
    ("≥ 18", "at least 18"), ("50+", "more than 50"), (">= 5 mg", "at least 5 mg"),
    # ranges
    ("5-10 mg", "5 to 10 mg"), ("between 5 and 10", "5–10"), ("5 mg", "5-10 mg"), ("10 mg", "5–10 mg"), ("20%-30%", "20 to 30 percent"), ("5 mg to 10 mg", "5-10 mg"),
    # ordinals
    ("third edition", "3rd edition"), ("the 21st", "21st"), ("Chapter 3", "third chapter"),
    # identifiers, versions, contacts
    ("v2.3", "2.3"), ("version 2.3", "v2.3"), ("2.3.1", "v2.3.1"), ("ISO 9001", "ISO-9001"), ("COVID-19", "Covid-19"), ("RTX4090", "rtx4090"),
    ("+1 (555) 123-4567", "555-123-4567"), ("+49 30 123456", "030 123456"), ("1-800-555-0199", "1 800 555 0199"),
    ("Help@Example.com", "help@example.com"), ("https://www.example.com/a/", "http://example.com/a"), ("example.com", "https://example.com/"), ("911", "911"),
    # names
    ("by WHO", "the World Health Organization"), ("the World Health Organization", "by WHO"), ("said Curie", "by Marie Curie"), ("Apple Inc.", "from Apple"),
    ("in São Paulo", "in Sao Paulo"), ("Einstein's", "by Albert Einstein"), ("the U.S.", "the United States"), ("in the UK", "the United Kingdom"), ("with Dr. John Smith", "by J. Smith"),
    ("by Marie Curie", "Marie Skłodowska Curie"), ("the Eiffel Tower", "near the EIFFEL Tower"), ("the EU", "the European Union"), ("the Bank of England", "at the Bank of England"),
]  # fmt: skip

DISAGREE: list[tuple[str, str]] = [
    ("1,000", "10,000"), ("twenty-five", "52"), ("a dozen", "10"), ("5 million", "5 billion"), ("-5 °C", "5 °C"), ("1.000.000", "100,000"), ("seven", "8"),
    ("50%", "15%"), ("half", "40%"), ("one in four", "one in five"), ("25%", "2.5%"), ("5 percentage points", "5%"), ("two-thirds", "1/3"),
    ("twice a day", "3 times a day"), ("twice a day", "twice a week"), ("once daily", "once weekly"),
    ("$50", "€50"), ("$50", "$55"), ("$5M", "$5 billion"), ("US$50", "C$50"), ("$49.99", "$50"), ("50 cents", "$50"), ("$50 per month", "$50 per year"), ("£20", "$20"), ("$50", "50%"),
    ("about $50", "$80"), ("$5-$10", "$5-$15"), ("¥100", "€100"), ("CHF 30", "30 euros"),
    ("March 3, 2021", "March 4, 2021"), ("March 3, 2021", "March 3, 2020"), ("2021-03-03", "in 2021"), ("2021-03-03", "March 2021"), ("March 2021", "in 2021"), ("in 2021", "in 2020"),
    ("03/04/2021", "5 March 2021"), ("the 1990s", "in 1985"), ("in 1995", "the 1990s"), ("19th century", "20th century"), ("Q3 2021", "Q2 2021"), ("Monday", "Tuesday"), ("44 BC", "44 AD"),
    ("3 May", "5 May"), ("on Monday", "2024-01-02"),
    ("3 PM", "3 AM"), ("15:00", "16:00"), ("noon", "midnight"), ("3:30", "3:45"), ("15:00", "3 AM"), ("3 PM EST", "3 PM UTC"),
    ("5 mg", "5 ml"), ("5 mg", "5 g"), ("5 mg", "50 mg"), ("1 hour", "90 minutes"), ("30 days", "1 month"), ("30 days", "30 business days"), ("10 km", "10 miles"), ("5 mg", "5 µg"),
    ("37 °C", "37 °F"), ("5 mg/kg", "5 mg/ml"), ("5 MW", "5 mW"), ("2 tablets", "3 tablets"), ("2 tablets", "2 capsules"), ("1 GB", "1 MB"), ("100 Mbps", "100 kbps"), ("60 km/h", "60 mph"),
    ("500 mg per day", "500 mg per hour"), ("2 weeks", "2 days"), ("5 mg", "5.4 mg"), ("5 mg", "5"), ("5 people", "5 mg"), ("1.6 km", "2 miles"),
    ("at least 5", "at most 5"), ("up to 10 mg", "at least 10 mg"), ("over 3 million", "2.9 million"), ("less than 100", "150"), ("about 3.1 million", "3.6 million"), ("more than 50", "500"),
    ("minimum of 20", "maximum of 20"), ("5-10 mg", "5-15 mg"), ("7 mg", "5-10 mg"), ("3.14", "3.15"),
    ("third edition", "4th edition"), ("the 21st", "the 22nd"),
    ("2.3.1", "2.3"), ("v2.3", "v2.4"), ("version 2.3", "2.3.1"), ("ISO 9001", "ISO 27001"), ("RTX4090", "RTX4080"), ("COVID-19", "COVID-20"),
    ("555-123-4567", "555-123-4568"), ("help@example.com", "sales@example.com"), ("example.com/a", "example.com/b"), ("example.com", "example.org"), ("911", "112"),
    ("by Marie Curie", "said Curie"), ("the WHO", "the World Trade Organization"), ("in Paris", "in London"), ("with John Smith", "with Jane Smith"), ("the UK", "the United States"),
    ("Albert Einstein", "Albert Schweitzer"), ("New York", "New Jersey"),
]  # fmt: skip
