"""Keywords that say what a claim is about: English, and the commonest German, French and Spanish ones.

Phrases are matched as whole words, in lower case, separated by "|". A trailing ``*`` on a phrase's last word
matches any ending.
"""

from __future__ import annotations

from typing import Final

from guardrail.values.lexicon import words

#: Enough on their own: a claim with one of these is about its reason.
KEYWORDS: Final[dict[str, str]] = {
    "clinical_direction": """
        contraindicat* | overdos* | dosage | dosages | dose | doses | dosing | drug interaction* | if you
        are pregnant | prescri* | consult your doctor | consult a doctor | see a doctor | talk to your
        doctor | ask your doctor | seek medical | medical attention | stop taking | do not take | don't
        take | should not take | should not be taken | must not take | must not be taken | on an empty
        stomach | einnehmen | einnahme | dosierung | gegenanzeige* | kontraindi* | überdosierung |
        posologie | contre-indi* | surdosage | posología | dosis | contraindica* | sobredosis""",
    "price": """
        refund | refunds | refunded | refundable | non-refundable | surcharge* | free of charge | at no
        cost | at no charge | no extra cost | free trial | interest rate* | kostet | kostenlos |
        erstattung | coûte | remboursement | gratuit | gratuitement | cuesta | reembolso | gratis""",
    "legal": """
        liable | liability | liabilities | warranty | warranties | indemnif* | indemnity | entitled to |
        terminate | terminates | terminated without | breach | unlawful | illegal | prohibited | forbidden
        | governing law | penalty | penalties | fined | eligible | ineligible | required by law | notice
        period | under the law | must comply | shall | haftung | haftet | gewährleistung | kündigung |
        kündigungsfrist | verboten | anspruch | widerruf* | responsabilité | résiliation | interdit |
        responsabilidad | garantía | prohibido | rescisión""",
    "safety_warning": """
        warning | danger | hazard* | poison* | flammable | explosive | lethal | life-threatening |
        electric shock | risk of injury | risk of fire | choking | allergic reaction* | anaphyla* | keep
        out of reach | keep away from | unsafe | do not mix | do not use | never use | do not touch | do
        not open | call 911 | call 112 | suicid* | self-harm | warnung | vorsicht | gefahr | lebensgefahr
        | notfall | avertissement | dangereux | mortel | advertencia | peligro | peligroso""",
    "deadline": """
        deadline | deadlines | due date | due by | due on | expires | expiry | valid until | no later than
        | not later than | last day to | cut-off date | cutoff date | frist | fristen | spätestens | läuft
        ab | gültig bis | date limite | échéance | au plus tard | expire le | fecha límite | plazo | a más
        tardar | vence | caduca""",
    "limit": """
        maximum | minimum | at most | up to | no more than | not more than | must not exceed | not
        exceed | does not exceed | limited to | upper limit | lower limit | limit of | limit is | cap of
        | capped at | quota | quotas | allowance | rate limit* | at least | no less than | age limit |
        not exceeding | not less than | not to exceed | no fewer than | as many as | as much as | or
        more | and above | or older | and older | or younger | or higher | or lower | or less | or fewer
        | bis zu | höchstens | mindestens | maximal | höchstgrenze | obergrenze | au maximum | au plus |
        au moins | jusqu'à | al menos | por lo menos | hasta | como máximo | como mínimo | límite""",
    "negation": """
        not | no | never | none | nobody | nothing | neither | nor | cannot | without | can't | won't |
        don't | doesn't | didn't | isn't | aren't | wasn't | weren't | shouldn't | mustn't | wouldn't |
        couldn't | hasn't | haven't | hadn't | nicht | kein | keine | keinen | niemals | nie | ohne | ne |
        pas | jamais | sans | aucun | aucune | nunca | jamás | sin | ningún | ninguna""",
    "superlative": """
        best | worst | the most | the least | largest | biggest | smallest | highest | lowest | oldest |
        youngest | newest | longest | shortest | fastest | slowest | strongest | greatest | cheapest |
        first ever | the only | always | completely | guaranteed | the first | exclusively | größte |
        größten | höchste | beste | älteste | einzige | immer | meilleur | meilleure | le plus | la plus |
        les plus | toujours | mejor | peor | el más | la más | siempre | único""",
}
#: Words of the topic: grave beside a number, a date, a "must" or a "not", else a mention.
TOPICS: Final[dict[str, str]] = {
    "clinical_direction": """
        side effect | side effects | adverse reaction* | adverse effect* | breastfeeding | breast-feeding
        | while pregnant | during pregnancy | nebenwirkung* | schwangerschaft | stillzeit | effets
        secondaires | effets indésirables | grossesse | allaitement | efectos secundarios | embarazo |
        lactancia""",
    "price": """
        price | prices | priced | pricing | fee | fees | costs | discount* | deposit | deductible | copay*
        | subscription fee* | preis | preise | kosten | gebühr | gebühren | rabatt | prix | frais | precio
        | precios | tarifa | tarifas""",
    "legal": """
        entitlement* | termination | statute* | statutory | legally | lawful | permitted | regulation* |
        lawsuit* | contract | contracts | contractual* | agreement | clause | clauses | jurisdiction |
        eligibility | license agreement | terms of service | terms and conditions | consent | copyright* |
        patent | patents | tax | taxes | taxable | deductib* | visa | court | confidential* | gdpr | hipaa
        | act of | vertrag | gesetzlich | gesetz | steuer* | garantie | contrat | loi | juridique |
        contrato | ley""",
    "safety_warning": """
        caution | dangerous* | toxic | toxicity | fatal | deadly | burns | emergency | evacuat* | recall*
        | carcinogen* | protective equipment | seizure* | heart attack | stroke | gefährlich | giftig |
        toxique | urgence | tóxico | emergencia""",
    "deadline": """
        expire | expired | expiration | valid for""",
}
#: Words that make a mention of a topic a direction.
MODALS: Final = words("""
    must shall should may can required require requires need needs only mandatory allowed obliged
    obligation applies apply muss müssen darf dürfen soll doit doivent peut debe deben puede
""")
#: Verbs of direction: clinical together with a word of ``MEDICAL``.
DIRECTIONS: Final = words("""
    take takes taking taken swallow inject injected apply applied use used give given administer
    administered avoid stop start continue chew crush mix store drink eat skip increase decrease reduce
    monitor wait repeat recommended should must nehmen einnehmen spritzen schlucken vermeiden prendre
    avaler éviter injecter tomar tome tragar evitar inyectar
""")
#: Medicine, and what is done with it.
MEDICAL: Final = words("""
    medicine medicines medication medications tablet tablets capsule capsules pill pills drug drugs
    antibiotic antibiotics ibuprofen paracetamol acetaminophen aspirin insulin warfarin metformin
    amoxicillin vaccine vaccines vaccination inhaler syringe injection injections ointment cream syrup
    infusion patient patients pharmacist doctor physician nurse symptom symptoms allergy allergic pregnant
    pregnancy liver kidney renal hepatic blood pressure therapy treatment antidepressant painkiller
    painkillers arzneimittel medikament medikamente tablette tabletten arzt apotheker schwanger médicament
    médicaments comprimé comprimés médecin pharmacien enceinte medicamento medicamentos comprimido
    comprimidos médico embarazada
""")
#: What is done with a device, a thing or a place: after a word of ``PERMITS``, a permission when one of
#: ``ADDRESSED`` is spoken of; together with a word of ``SURROUNDINGS`` a matter of safety.
HANDLING: Final = words("""
    use used using operate operated install installed connect connected plug plugged wash washed clean
    cleaned immerse immersed submerge submerged expose exposed charge charged store stored keep kept placed
    mount mounted open opened wear ride drive park smoke heated microwave freeze disposed remove removed
    enter bring carry swim share
""")
PERMITS: Final = words("""
    can may must should cannot can't mustn't shouldn't allowed permitted
""")
#: Whose permissions they are.
ADDRESSED: Final = words("""
    you users customers guests visitors passengers tenants residents employees members
""")
#: Where, and with what, handling a thing becomes dangerous.
SURROUNDINGS: Final = words("""
    bathroom bathrooms shower bath bathtub sauna wet damp moisture splashed waterproof outdoors rain steam
    flame flames oven stove microwave dishwasher heater heaters fireplace battery batteries socket sockets
    mains voltage electrical wiring propane petrol gasoline bleach ammonia solvent solvents detergent ladder
    machinery blade blades helmet gloves goggles ventilated unattended
""")
#: Units that are doses wherever they stand; and those that are beside a clinical word.
DOSE_UNITS: Final = words("""
    mg µg ng IU mEq mmol µmol tablet capsule pill puff spray
""")
MAYBE_DOSE_UNITS: Final = frozenset({"g", "ml", "l", "drop", "tsp", "tbsp", "time"})
#: Words right before a date, time or duration that make it a deadline.
DEADLINE_BEFORE: Final = words("""
    by until till within due expires expire ends deadline bis innerhalb spätestens binnen avant jusqu'au
    hasta antes dentro
""")
#: Talk without a fact: minor when nothing else is found.
CHATTER: Final = """
    i think | i believe | i feel | in my opinion | in my view | i hope | hope this helps | hope that helps
    | feel free | let me know | happy to | glad to | you're welcome | thank you | thanks | good question |
    great question | interesting | it depends | sort of | kind of | fun | lovely | wonderful | beautiful |
    amazing | awesome | nice | great | exciting | enjoy | good luck | perhaps | maybe | who knows |
    generally speaking | as you may know | it is important to note | worth noting | various factors | many
    factors | can vary | may vary | varies | in general | overall | in conclusion | to sum up | in summary
    | as mentioned | ich denke | ich glaube | meiner meinung nach | viel spaß | vielleicht | je pense | à
    mon avis | peut-être | creo que | en mi opinión | tal vez | quizás
"""
