"""Units and currencies: what they are called, and how they convert.

A table instead of a units library: pint converts well, but it reads a whole expression, not running text, and
costs more memory and start-up time than all the rest of this package (``benchmarks/values.py --libraries``).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple


class Unit(NamedTuple):
    """A unit: ``base = amount * factor + offset`` in the dimension's base unit."""

    name: str
    dimension: str
    factor: Decimal
    offset: Decimal = Decimal(0)


# dimension: name factor spelling spelling ...  Spellings of one to three letters are case-sensitive.
_TABLE: Final = """
mass
  ng 0.000000001 ng nanogram nanograms
  µg 0.000001 µg μg mcg ug microgram micrograms mikrogramm
  mg 0.001 mg mgs milligram milligrams milligramme milligrammes milligramm miligramo miligramos
  g 1 g gm gms gram grams gramme grammes gramm gramo gramos
  kg 1000 kg kgs Kg KG kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramo kilogramos
  t 1000000 tonne tonnes tonnen tonelada toneladas
  lb 453.59237 lb lbs pound pounds pfund
  oz 28.349523125 oz ounce ounces
  ton 907184.74 ton tons
length
  nm 0.000000001 nm nanometer nanometers nanometre nanometres
  µm 0.000001 µm μm micron microns micrometer micrometers micrometre micrometres
  mm 0.001 mm millimeter millimeters millimetre millimetres
  cm 0.01 cm centimeter centimeters centimetre centimetres zentimeter
  m 1 m meter meters metre metres mètre mètres metro metros
  km 1000 km Km kms kilometer kilometers kilometre kilometres kilomètre kilomètres kilómetro kilómetros
  inch 0.0254 inch inches
  ft 0.3048 ft foot feet
  yd 0.9144 yd yds yard yards
  mi 1609.344 mi mile miles
area
  cm² 0.0001 cm² cm2
  m² 1 m² m2 sqm square-meter square-meters square-metre square-metres quadratmeter
  km² 1000000 km² km2 square-kilometer square-kilometers square-kilometre square-kilometres
  ft² 0.09290304 ft² ft2 sqft square-foot square-feet sq-ft
  mi² 2589988.110336 square-mile square-miles sq-mi
  ha 10000 ha hectare hectares hektar
  ac 4046.8564224 acre acres
volume
  µl 0.000001 µl μl µL μL microliter microliters microlitre microlitres
  ml 0.001 ml mL ML-volume cc milliliter milliliters millilitre millilitres mililitro mililitros
  cl 0.01 cl cL centiliter centilitre
  dl 0.1 dl dL deciliter decilitre
  l 1 l L ltr liter liters litre litres litro litros
  m³ 1000 m³ m3 cubic-meter cubic-meters cubic-metre cubic-metres
  gal 3.785411784 gal gallon gallons
  qt 0.946352946 quart quarts
  pt 0.473176473 pint pints
  floz 0.0295735295625 fl-oz fluid-ounce fluid-ounces
  cup 0.2365882365 cup cups
  tbsp 0.01478676478125 tbsp tablespoon tablespoons
  tsp 0.00492892159375 tsp teaspoon teaspoons
time
  ns 0.000000001 ns nanosecond nanoseconds
  µs 0.000001 µs μs microsecond microseconds
  ms 0.001 ms millisecond milliseconds
  s 1 s sec secs second seconds sekunde sekunden seconde secondes segundo segundos
  min 60 min mins minute minutes minuten minuto minutos
  h 3600 h hr hrs hour hours stunde stunden heure heures hora horas
  day 86400 day days tag tage tagen jour jours día días
  week 604800 wk wks week weeks woche wochen semaine semaines semana semanas
  fortnight 1209600 fortnight fortnights
months
  month 1 month months monat monate monaten mois mes meses
  year 12 yr yrs year years jahr jahre jahren année années ans año años
  decade 120 decade decades
  century 1200 century centuries
workday
  workday 1 business-day business-days working-day working-days werktag werktage werktagen arbeitstage
temperature
  K 1 kelvin kelvins
  °C 1+273.15 °C ℃ celsius
  °F 0.5555555555555555555555555556+255.3722222222222222222222222 °F ℉ fahrenheit
angle
  deg 1 degree degrees
data
  bit 0.125 bit bits
  kbit 125 kbit kb-bit kilobit kilobits
  Mbit 125000 Mb Mbit megabit megabits
  Gbit 125000000 Gb Gbit gigabit gigabits
  B 1 byte bytes
  kB 1000 kB KB kilobyte kilobytes
  MB 1000000 MB megabyte megabytes
  GB 1000000000 GB gigabyte gigabytes
  TB 1000000000000 TB terabyte terabytes
  PB 1000000000000000 PB petabyte petabytes
  KiB 1024 KiB kibibyte
  MiB 1048576 MiB mebibyte
  GiB 1073741824 GiB gibibyte
  TiB 1099511627776 TiB tebibyte
datarate
  kbps 125 kbps kbit-s
  Mbps 125000 Mbps mbps
  Gbps 125000000 Gbps gbps
speed
  m-s 1 mps
  km/h 0.2777777777777777777777777778 kmh kph km/h
  mph 0.44704 mph
  knot 0.5144444444444444444444444444 knot knots kn
frequency
  Hz 1 Hz hertz
  kHz 1000 kHz kilohertz
  MHz 1000000 MHz megahertz
  GHz 1000000000 GHz gigahertz
  rpm 0.01666666666666666666666666667 rpm RPM
power
  mW 0.001 mW milliwatt milliwatts
  W 1 W watt watts
  kW 1000 kW kilowatt kilowatts
  MW 1000000 MW megawatt megawatts
  GW 1000000000 GW gigawatt gigawatts
  hp 745.69987158227022 hp horsepower
energy
  J 1 J joule joules
  kJ 1000 kJ kilojoule kilojoules
  MJ 1000000 MJ megajoule megajoules
  kcal 4184 kcal kilocalorie kilocalories calorie calories
  Wh 3600 Wh
  kWh 3600000 kWh kwh kilowatt-hour kilowatt-hours
  MWh 3600000000 MWh
  GWh 3600000000000 GWh
  TWh 3600000000000000 TWh
voltage
  mV 0.001 mV millivolt millivolts
  V 1 V volt volts
  kV 1000 kV kilovolt kilovolts
current
  mA 0.001 mA milliamp milliamps
  A 1 A amp amps ampere amperes
charge
  mAh 1 mAh
  Ah 1000 Ah
pressure
  Pa 1 Pa pascal pascals
  hPa 100 hPa
  kPa 1000 kPa
  MPa 1000000 MPa
  bar 100000 bar
  psi 6894.757293168 psi PSI
  mmHg 133.322387415 mmHg
force
  N 1 newton newtons
substance
  µmol 0.000001 µmol μmol
  mmol 0.001 mmol millimole millimoles
  mol 1 mol mole moles
activity
  IU 1 IU iu I.U.
  mU 0.001 mU
sound
  dB 1 dB decibel decibels
acid
  mEq 1 mEq
points
  pp 1 percentage-point percentage-points prozentpunkt prozentpunkte prozentpunkten pp
  bp 0.01 bp bps basis-point basis-points
pixels
  px 1 px pixel pixels
  MP 1000000 MP megapixel megapixels
dose
  tablet 1 tablet tablets tab tabs tablette tabletten comprimé comprimés comprimido comprimidos
capsule
  capsule 1 capsule capsules cápsula cápsulas kapsel kapseln
pill
  pill 1 pill pills
drop
  drop 1 drop drops tropfen gouttes gotas
puff
  puff 1 puff puffs
spray
  spray 1 spray sprays
times
  time 1 time times fold mal fois veces x
"""


def _build() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    dimension = ""
    for line in _TABLE.strip().splitlines():
        if not line.startswith(" "):
            dimension = line
            continue
        name, scale, *spellings = line.split()
        factor, _, offset = scale.partition("+")
        unit = Unit(name, dimension, Decimal(factor), Decimal(offset or 0))
        for spelling in (name, *spellings):
            units.setdefault(spelling.replace("-", " "), unit)
    return units


#: By spelling. Words of four letters and more are in lower case.
UNITS: Final = _build()
#: By the name that ``Value.unit`` carries.
BY_NAME: Final = {unit.name: unit for unit in UNITS.values()}
#: Units that are no measure but a count: a plain number may back them.
COUNTS: Final = frozenset({"tablet", "capsule", "pill", "drop", "puff", "spray", "time", "deg"})


def find_unit(text: str) -> Unit | None:
    """The unit that ``text`` spells, or None. Short symbols are case-sensitive (MW is not mW)."""
    unit = UNITS.get(text)
    if unit is None and len(text) > 2:
        unit = UNITS.get(text.lower())
    return unit


# ------------------------------------------------------------------------------------------ currencies

DOLLARS: Final = frozenset({"USD", "CAD", "AUD", "NZD", "HKD", "SGD", "MXN", "TWD"})
#: Signs and words that stand for several currencies; each agrees with any of its codes.
FAMILIES: Final = {
    "$": DOLLARS,
    "¥": frozenset({"JPY", "CNY"}),
    "kr": frozenset({"SEK", "NOK", "DKK", "ISK"}),
    "Rs": frozenset({"INR", "PKR", "LKR", "NPR"}),
    "peso": frozenset({"MXN", "ARS", "CLP", "COP", "PHP"}),
    "¢": frozenset({"$", "EUR"}) | DOLLARS,
}
_CODES: Final = """
    USD EUR GBP JPY CNY CHF CAD AUD NZD HKD SGD MXN TWD SEK NOK DKK ISK INR PKR LKR NPR BRL ZAR RUB
    UAH PLN CZK HUF RON TRY ILS AED SAR KRW THB MYR IDR PHP VND NGN KES EGP ARS CLP COP PEN BTC ETH
"""
#: Signs and codes before or after the amount, exact case.
SIGNS: Final = {code: code for code in _CODES.split()} | {
    "$": "$", "€": "EUR", "£": "GBP", "¥": "¥", "₹": "INR", "₩": "KRW", "₽": "RUB", "₺": "TRY", "₪": "ILS",
    "₴": "UAH",
    "฿": "THB", "₫": "VND", "₦": "NGN", "₿": "BTC", "Rs": "Rs", "RMB": "CNY", "Fr": "CHF", "SFr": "CHF",
    "kr": "kr", "zł": "PLN",
    "R$": "BRL", "US$": "USD", "U.S.$": "USD", "A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD",
    "NZ$": "NZD", "HK$": "HKD", "S$": "SGD", "NT$": "TWD", "Mex$": "MXN",
}  # fmt: skip
#: Words after the amount, in lower case.
CURRENCY_WORDS: Final = {
    "dollar": "$", "dollars": "$", "bucks": "$", "dólar": "$", "dólares": "$", "us dollar": "USD",
    "us dollars": "USD", "u.s. dollars": "USD",
    "u.s. dollar": "USD", "canadian dollars": "CAD", "australian dollars": "AUD", "euro": "EUR",
    "euros": "EUR", "eur": "EUR", "usd": "USD",
    "pound sterling": "GBP", "pounds sterling": "GBP", "gbp": "GBP", "quid": "GBP", "yen": "JPY",
    "yuan": "CNY", "renminbi": "CNY",
    "rupee": "Rs", "rupees": "Rs", "swiss francs": "CHF", "swiss franc": "CHF", "franken": "CHF",
    "francs": "CHF", "peso": "peso", "pesos": "peso",
    "rubles": "RUB", "roubles": "RUB", "won": "KRW", "bitcoin": "BTC", "bitcoins": "BTC", "kronor": "SEK",
    "kroner": "kr", "krona": "SEK",
    "zloty": "PLN", "zlotys": "PLN", "rand": "ZAR", "reais": "BRL", "dirhams": "AED", "shekels": "ILS",
    "lira": "TRY",
}  # fmt: skip
#: Hundredths of a currency.
CENTS: Final = {
    "cent": "¢",
    "cents": "¢",
    "¢": "¢",
    "pence": "GBP",
    "penny": "GBP",
    "centimes": "EUR",
    "céntimos": "EUR",
}


def same_currency(a: str, b: str) -> bool:
    """May both signs or codes mean the same currency? "$" may be any dollar."""
    return a == b or b in FAMILIES.get(a, ()) or a in FAMILIES.get(b, ())
