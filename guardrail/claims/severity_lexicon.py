"""Keywords that say what a claim is about: English, and the commonest German, French and Spanish ones.

Phrases are matched as whole words, in lower case. A trailing ``*`` on a phrase's last word matches any ending.
"""

from __future__ import annotations

from typing import Final

#: Enough on their own.
KEYWORDS: Final[dict[str, str]] = {
    "clinical_direction": """contraindicat* | overdos* | dosage | dosages | dose | doses | dosing | side effect | side effects | adverse reaction* |
        adverse effect* | drug interaction* | breastfeeding | breast-feeding | while pregnant | during pregnancy | if you are pregnant |
        prescri* | consult your doctor | consult a doctor | see a doctor | talk to your doctor | ask your doctor | seek medical | medical attention |
        stop taking | do not take | don't take | should not take | should not be taken | must not take | must not be taken | on an empty stomach |
        nebenwirkung* | einnehmen | einnahme | dosierung | gegenanzeige* | kontraindi* | überdosierung | schwangerschaft | stillzeit |
        effets secondaires | effets indésirables | posologie | contre-indi* | surdosage | grossesse | allaitement |
        efectos secundarios | posología | dosis | contraindica* | sobredosis | embarazo | lactancia""",
    "price": """price | prices | priced | pricing | fee | fees | costs | refund | refunds | refunded | refundable | non-refundable | surcharge* | discount* |
        free of charge | at no cost | at no charge | no extra cost | free trial | deposit | per month | interest rate* | deductible | copay* | premium rate* |
        subscription fee* | preis | preise | kostet | kosten | kostenlos | gebühr | gebühren | erstattung | rabatt | prix | coûte | frais |
        remboursement | gratuit | gratuitement | precio | precios | cuesta | tarifa | tarifas | reembolso | gratis""",
    "legal": """liable | liability | liabilities | warranty | warranties | warrants | indemnif* | indemnity | entitled to | entitlement* | terminate | terminates | terminated |
        termination | breach | breaches | statute* | statutory | legally | unlawful | lawful | illegal | prohibited | forbidden | permitted | regulation* |
        lawsuit* | contract | contracts | contractual* | agreement | clause | clauses | governing law | jurisdiction | penalty | penalties | fined |
        eligible | ineligible | eligibility | required by law | license agreement | terms of service | terms and conditions | notice period | consent |
        copyright* | patent* | tax | taxes | taxable | deductib* | visa | court | shall | under the law | confidential* | gdpr | hipaa |
        haftung | haftet | gewährleistung | kündigung | kündigungsfrist | vertrag | gesetzlich | verboten | gesetz | anspruch | widerruf* | steuer* |
        responsabilité | garantie | résiliation | contrat | interdit | loi | juridique | responsabilidad | garantía | contrato | prohibido | ley | rescisión""",
    "safety_warning": """warning | caution | danger | dangerous* | hazard* | toxic | poison* | flammable | explosive | fatal | lethal | life-threatening | deadly |
        electric shock | risk of injury | risk of fire | burns | choking | emergency | evacuat* | recall* | allergic reaction* | anaphyla* | carcinogen* |
        keep out of reach | keep away from | protective equipment | unsafe | do not mix | do not use | never use | do not touch | do not open |
        call 911 | call 112 | suicid* | self-harm | seizure* | heart attack | stroke |
        warnung | vorsicht | gefahr | gefährlich | giftig | lebensgefahr | notfall | avertissement | attention danger | dangereux | toxique | mortel | urgence |
        advertencia | peligro | peligroso | tóxico | emergencia""",
    "deadline": """deadline | deadlines | due date | due by | due on | expires | expire | expired | expiry | expiration | valid until | valid for | no later than |
        not later than | last day to | cut-off | cutoff date | frist | fristen | spätestens | läuft ab | gültig bis | date limite | échéance |
        au plus tard | expire le | fecha límite | plazo | a más tardar | vence | caduca""",
    "limit": """maximum | minimum | at most | up to | no more than | not more than | must not exceed | not exceed | does not exceed | limited to | upper limit | lower limit |
        limit of | limit is | cap of | capped at | quota | quotas | allowance | rate limit* | at least | no less than | age limit | not exceeding |
        höchstens | mindestens | maximal | höchstgrenze | obergrenze | au maximum | au plus | au moins | al menos | como máximo | como mínimo | límite""",
    "negation": """not | no | never | none | nobody | nothing | neither | nor | cannot | without | can't | won't | don't | doesn't | didn't | isn't | aren't |
        wasn't | weren't | shouldn't | mustn't | wouldn't | couldn't | hasn't | haven't | hadn't | nicht | kein | keine | keinen | niemals | nie | ohne |
        ne | pas | jamais | sans | aucun | aucune | nunca | jamás | sin | ningún | ninguna""",
    "superlative": """best | worst | most | least | largest | biggest | smallest | highest | lowest | oldest | youngest | newest | longest | shortest | fastest |
        slowest | strongest | greatest | cheapest | first ever | the only | always | all of | every | entirely | completely | guaranteed | the first |
        100% | unique | exclusively | any time | größte | größten | höchste | beste | älteste | einzige | immer |
        meilleur | meilleure | le plus | la plus | les plus | toujours | seul | mejor | peor | el más | la más | siempre | único""",
}
#: Verbs of direction: clinical together with a word of ``MEDICAL``.
DIRECTIONS: Final = frozenset(
    """take takes taking taken swallow inject injected apply applied use used give given administer administered avoid stop start continue
    chew crush mix store drink eat skip increase decrease reduce monitor wait repeat recommended should must
    nehmen einnehmen spritzen schlucken vermeiden prendre avaler éviter injecter tomar tome tragar evitar inyectar""".split()
)
#: Medicine, and what is done with it.
MEDICAL: Final = frozenset(
    """medicine medicines medication medications tablet tablets capsule capsules pill pills drug drugs antibiotic antibiotics
    ibuprofen paracetamol acetaminophen aspirin insulin warfarin metformin amoxicillin vaccine vaccines vaccination inhaler syringe
    injection injections ointment cream syrup infusion patient patients pharmacist doctor physician nurse symptom symptoms allergy allergic
    pregnant pregnancy liver kidney renal hepatic blood pressure therapy treatment antidepressant painkiller painkillers
    arzneimittel medikament medikamente tablette tabletten arzt apotheker schwanger médicament médicaments comprimé comprimés
    médecin pharmacien enceinte medicamento medicamentos comprimido comprimidos médico embarazada""".split()
)
#: Units that are doses wherever they stand; and those that are beside a clinical word.
DOSE_UNITS: Final = frozenset({"mg", "µg", "ng", "IU", "mEq", "mmol", "µmol", "tablet", "capsule", "pill", "puff", "spray"})
MAYBE_DOSE_UNITS: Final = frozenset({"g", "ml", "l", "drop", "tsp", "tbsp", "time", "h", "day"})
#: Words right before a date, time or duration that make it a deadline.
DEADLINE_BEFORE: Final = frozenset(
    "by until till within due expires expire ends deadline bis innerhalb spätestens binnen avant jusqu'au hasta antes dentro".split()
)
#: Talk without a fact: minor when nothing else is found.
CHATTER: Final = """i think | i believe | i feel | in my opinion | in my view | i hope | hope this helps | hope that helps | feel free | let me know | happy to |
    glad to | you're welcome | thank you | thanks | good question | great question | interesting | it depends | sort of | kind of | fun | lovely | wonderful |
    beautiful | amazing | awesome | nice | great | exciting | enjoy | good luck | perhaps | maybe | who knows | generally speaking | as you may know |
    it is important to note | worth noting | various factors | many factors | can vary | may vary | varies | in general | overall | in conclusion |
    to sum up | in summary | as mentioned | ich denke | ich glaube | meiner meinung nach | viel spaß | vielleicht | je pense | à mon avis | peut-être |
    creo que | en mi opinión | tal vez | quizás"""
