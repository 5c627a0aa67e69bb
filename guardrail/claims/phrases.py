"""The wordings of sentences that state nothing, by language, as alternatives of regular expressions.

Every pattern is matched at the beginning of a clause in lower case, with typographic apostrophes folded to
``'``. Repeats are bounded and never nested, so that matching is linear. To add a language, add its wordings.
"""

from __future__ import annotations

from typing import Final

_ADVERB: Final = (
    r"(?:(?:unfortunately|sorry|regrettably|however|honestly|currently|at this time|as an ai[a-z ]{0,20}"
    r"|(?:however,? )?without (?:more|further|additional|specific|specified|any)[^,.;:]{0,80}),? )?"
)
_SORRY: Final = (
    r"(?:(?:i'm|i am|we're|we are) (?:very |so )?(?:sorry|afraid)(?:,? but|,? that|,)? )?(?:but )?"
)
_DOCUMENTS: Final = (
    r"(?:the |these |those |this |any of the |none of the |my |your |our )?"
    r"(?:(?:provided|given|retrieved|available|supplied|above|uploaded|cited|current|search|knowledge"
    r"|source|context|reference) ){0,3}"
    r"(?:documents?|docs?|documentation|contexts?|sources?|texts?|passages?|information|results?|base"
    r"|materials?|excerpts?"
    r"|references?|snippets?)"
    r"(?: (?:i have|i was given|provided|given|available|retrieved|above|at hand))?"
)
# Documents that are also what the answer is about: "the policy does not include flood damage" is a claim.
_SUBJECTS: Final = (
    r"(?:the |this |that |these |your |our )(?:[a-z-]{1,20} )?(?:leaflet|contract|policy|articles?|data"
    r"|files?|pages?|content|agreement"
    r"|manual|report|terms|website|guidelines?|label|brochure|studies|study|papers?)"
)
_NOT: Final = r"(?:do(?:es)? not|don't|doesn't|did not|didn't)"
_SAY: Final = (
    r"(?:say|mention|contain|specify|provide|include|state|cover|address|indicate|give|discuss|describe"
    r"|have(?! to\b)|offer|tell|reveal"
    r"|list|answer|explain|detail|clarify|refer)"
)
_SPEAK: Final = r"(?:say|mention|specify|state|address|indicate|discuss|describe|tell|answer|explain|clarify)"
_ABLE: Final = (
    r"(?:can't|cannot|can not|could not|couldn't|am unable to|was unable to|am not able to|was not able to"
    r"|'m unable to|'m not able to)"
)

# What a writer lacks who abstains. "I don't have any doubt", "I found no evidence of risk" lack something
# else, and assert.
_KNOWLEDGE: Final = (
    r"(?:(?:any|the|that|this|a|an|more|much|enough|sufficient|specific|definitive|definite|clear|reliable"
    r"|exact|precise|detailed|relevant|direct|further|up-to-date|current|such|your|its|personal|real-time"
    r"|explicit|additional|first-hand|good|of) ){0,4}"
    r"(?:access|information|info|data|details?|specifics|answers?|knowledge|mention|references?|records?"
    r"|documents?|documentation|sources?|context|figures?|idea|clue|opinions?|feelings|preferences?"
    r"|experiences?|expertise|statistics|numbers?|material|guidance)\b"
)
_ASSURING: Final = (
    r"(?![^.;:]{0,60}\b(?:doubts?|problems?|issues?|concerns?|objections?|reservations?|worr(?:y|ies)"
    r"|hesitations?|reasons?|qualms?|fears?|evidence|proof|signs?|indications?|risks?|risky|dangers?"
    r"|dangerous|harm|harmful|unsafe|faults?|interactions?|side effects?|adverse|contraindications?"
    r"|downsides?"
    r"|drawbacks?|limits?|obligations?|causes?|grounds|anything (?:wrong|bad|against|unsafe))\b)"
)
_LACKED: Final = rf"(?:{_KNOWLEDGE}|[^.,;:]{{0,100}}\b(?:in|within|from|by) {_DOCUMENTS}\b|{_ASSURING})"
_EXCUSE: Final = _ADVERB + _SORRY + rf"(?:based on {_DOCUMENTS},? )?"
_ENGLISH_ABSTENTIONS: Final = (
    r"(?:i|we) (?:really |just |simply |honestly )?(?:do not|don't|did not|didn't) (?:actually |currently )?"
    r"(?:know(?= ?[.!,;:\u2013\u2014-]|$| (?:that[.!]?$|the|this|it|your|its|if|whether|what|when|where"
    r"|who|why|how"
    rf"|which|about|for|exactly|enough|yet|anything|but|and|or|because|since|though|as)\b){_ASSURING}"
    rf"|have {_KNOWLEDGE}|have (?:the|that|this)\b{_ASSURING}"
    rf"|see {_KNOWLEDGE}|see (?:any|a|an|that|this|the)\b[^.,;:]{{0,100}}\b(?:in|within|from) {_DOCUMENTS}\b"
    rf"|find {_LACKED}|recall{_ASSURING}|understand your)",
    rf"(?:i|we) ?{_ABLE} (?:(?:find|locate|see|offer)\b {_LACKED}|(?:find|locate|see)(?: it)?[.!]?$"
    r"|(?:answer|help(?! but| [a-z]{2,20}ing\b)|(?:say|tell|comment)(?!(?: you)? (?:enough|strongly|often"
    r"|too))"
    r"|assist|respond|discuss|comply|do that|fulfil|access|provide|give|determine|confirm|verify|share)\b)",
    rf"(?:i|we) (?:found no|have no|see no) (?:specific |relevant |further |direct "
    rf"|explicit )?(?:(?:information"
    rf"|mention|answer|data|details|idea|record|reference)s?\b|[^.,;:]{{0,80}}\bin {_DOCUMENTS}\b)",
    r"(?:i'm|i am|we're|we are) (?:not (?:entirely |completely |quite |really )?(?:sure|certain|familiar)"
    rf"|unsure|uncertain|not aware of {_LACKED})\b",
    rf"{_DOCUMENTS} {_NOT} (?:explicitly |directly |specifically |clearly |actually "
    rf"|seem to |appear to ){{0,2}}{_SAY}\b",
    rf"{_SUBJECTS} {_NOT} (?:explicitly |directly |specifically |clearly "
    rf"|actually ){{0,2}}{_SPEAK}\b",
    rf"{_DOCUMENTS} (?:is|are) (?:silent|unclear|insufficient|not (?:sufficient|enough"
    rf"|clear))\b",
    rf"none of (?:the |these )?{_DOCUMENTS} (?:say|mention|contain|specify|provide|state"
    rf"|cover|address|answer)s?\b",
    rf"there (?:is|are|was|were) (?:no|not enough|insufficient|not any) (?:specific |explicit "
    rf"|direct |further |such |relevant )?"
    rf"(?:(?:information|mention|details?|data|answer|reference"
    rf"|indication)s?\b(?=[^.]{{0,200}}\b{_DOCUMENTS})"
    rf"|(?:information|mention|details|data|answer|reference)s?\b"
    rf"(?= (?:about|on|regarding|available|provided|given|here)\b| to (?:answer|determine|confirm|verify"
    rf"|say)\b))",
    r"(?:no|not enough|insufficient) (?:specific |explicit |relevant |further )?(?:information"
    r"|details?|data|answer|mention)s? "
    r"(?:(?:is|are|was|were) (?:available|given|provided|found|mentioned)|(?:about|on|regarding|of|in) )",
    # "It is not covered." speaks of what is insured, unless documents are named.
    rf"(?:it|this|that) (?:is|was) not (?:stated|specified|mentioned|clear|given|covered|addressed"
    rf"|known) (?:in|from|by) {_DOCUMENTS}|(?:it|this|that) (?:is|was) not (?:stated|specified|mentioned"
    rf"|clear"
    rf"|known)[.!]?$|(?:it|this|that) (?:is|was) (?:not possible|impossible|unclear"
    rf"|not clear) (?:to (?:answer"
    rf"|say|tell|know|determine|confirm|verify)\b|(?:in|from) {_DOCUMENTS})",
)

# As above, in German, French, Spanish, Portuguese and Italian.
_WISSEN: Final = (
    r"(?:nichts (?:dazu|darüber|hierzu|gefunden|finden|in )|(?:keine|keinen|kein"
    r"|keinerlei) (?:[a-zäöüß]{1,20} ){0,2}"
    r"(?:informationen?|angaben?|auskunft|antwort|daten|details|zugriff|zugang|kenntnis(?:se)?|ahnung"
    r"|erwähnung|aussagen?|belege in)\b)"
)
_ZUSICHERND: Final = (
    r"(?![^.;:]{0,120}\b(?:zweifel|bedenken|risik|gefahr|problem|einw[aä]nd|wechselwirkung|nebenwirkung"
    r"|grund\b|gründe"
    r"|genug\b|schaden))"
)
_CONNAISSANCE: Final = (
    r"(?:[^.,;:]{0,30}?(?:pas|aucune?) (?:de |d'|trouvé |d'autres )?(?:suffisamment d'|assez d')?"
    r"(?:informations?|données|détails?|réponse|mention|accès|précisions?|idée)"
    r"|(?![^.;:]{0,80}\b(?:doute|problème|risque|danger|inconvénient|raison|objection|interaction|effet|assez"
    r"|crainte))[^.,;:]{0,30}?(?:pas|aucune?))\b"
)
_SEGURIDAD: Final = (
    r"(?![^.;:]{0,60}\b(?:dud|problem|riesg|risc|risch|peligr|perig|pericol|inconvenient|raz[oó]n|motiv"
    r"|efect|efeit"
    r"|effett|objeci))"
)

#: The writer does not know, or the documents do not say.
ABSTENTIONS: Final = (
    # What they have in common is tried once.
    f"{_EXCUSE}(?:{'|'.join(_ENGLISH_ABSTENTIONS)})",
    # German
    r"(?:leider )?(?:das )?(?:weiß|wissen) (?:ich|wir) (?:das )?(?:leider )?(?:nicht|nichts)\b",
    rf"(?:leider )?(?:ich|wir) (?:(?:weiß|wissen)[^,.;:]{{0,80}} (?:nicht|nichts"
    rf"|keine antwort)\b{_ZUSICHERND}"
    rf"|(?:habe|haben|konnte|konnten|kann|können|finde|finden)[^,.;:]{{0,80}}? {_WISSEN}"
    rf"|(?:kann|können|konnte|konnten|finde|finden){_ZUSICHERND}[^,.;:]{{0,80}} (?:nicht|nichts|keine"
    rf"|keinen|kein)"
    r"(?: [^\s,.;:]{1,30}){0,8}(?: (?:finden|beantworten|sagen|bestätigen|feststellen|bestimmen|helfen"
    r"|entnehmen"
    r"|angeben|nennen|beurteilen|ermitteln|weiterhelfen)\b|[.!]?$))",
    rf"(?:leider )?(?:habe|haben|konnte|konnten|kann|können) (?:ich|wir)[^,.;:]{{0,80}}? {_WISSEN}",
    rf"(?:leider )?(?:kann|konnte|können|konnten) (?:ich|wir){_ZUSICHERND}[^,.;:]{{0,80}} (?:nicht|nichts"
    rf"|keine"
    r"|keinen|kein)\b[^.;:]{0,80}\b(?:finden|beantworten|sagen|bestätigen|feststellen|helfen|entnehmen"
    r"|angeben"
    r"|nennen|beurteilen)\b",
    r"(?:leider )?(?:die|den|in den|in der|aus den|das|der) (?:vorliegenden |bereitgestellten |angegebenen "
    r"|verfügbaren )?"
    r"(?:dokumente[n]?|unterlagen|quellen|texte[n]?|informationen|kontext|text|dokumentation)"
    r"(?=[^.;:]{0,160}\b(?:sag|erwähn|enth[aä]l|nenn|geb|gib|geh|steh|find|mach|spezifizier|beantwort"
    r"|behandel"
    r"|hervor|lief|ange|ersichtlich|aufge|genannt|entnehm|beschr|erklär|reich))[^,.;:]{0,60} "
    r"(?:nicht|nichts|keine|keinen|kein|keinerlei)\b",
    rf"(?:leider )?(?:dazu|hierzu|darüber|dafür) (?:gibt es|liegen|habe ich|finde ich|steht)[^,.;:]{{0,60}}? "
    rf"(?:nichts\b|{_WISSEN})",
    # French
    rf"(?:malheureusement,? |désolée?,? )?je (?:ne (?:sais|dispose|trouve|peux|suis|connais)"
    rf"|n'ai) {_CONNAISSANCE}",
    r"(?:malheureusement,? )?(?:les|le|la|ces|ce) (?:documents?|sources?|textes?|contexte|informations?"
    r"|passages?)(?=[^.;:]{0,100}\b(?:mention|précis|indiqu|dis|conti|parl|donn|fourni|spécif|répond"
    r"|évoqu|permet"
    r"|compor|abord|expliqu))[^,.;:]{0,40} (?:ne |n')[^,.;:]{0,40}(?:pas|aucune?|rien)\b",
    r"(?:malheureusement,? )?(?:aucune information"
    r"|il n'y a (?:pas|aucune) (?:d'|de )?(?:informations?|mention|données|détails?)\b)",
    # Spanish
    rf"(?:lamentablemente,? |lo siento,? (?:pero )?|desafortunadamente,? )?(?:yo )?no (?:lo sé|sé{_SEGURIDAD}"
    r"|tengo (?:información|datos|suficiente)"
    r"|puedo (?:responder|encontrar|confirmar|determinar|ayudar)"
    rf"|(?:encuentro|encontré|dispongo){_SEGURIDAD}"
    r"|estoy segur[oa])",
    r"(?:lamentablemente,? |desafortunadamente,? )?(?:los|el|la|las|estos) (?:documentos?|fuentes?|textos?"
    r"|contexto|información|pasajes?)"
    r"[^,.;:]{0,40} no (?:dice|dicen|menciona|mencionan|contiene|contienen|especifica|especifican|indica"
    r"|indican|incluye|incluyen"
    r"|proporciona|proporcionan|aborda|abordan)\b",
    r"no hay (?:información|datos|mención)\b",
    # Portuguese, Italian
    rf"(?:infelizmente,? )?(?:eu )?não (?:sei|tenho (?:informações|dados)|encontrei{_SEGURIDAD}"
    rf"|posso (?:responder"
    r"|confirmar))",
    r"(?:purtroppo,? )?(?:non lo so|non (?:so|ho (?:informazioni|trovato)|posso (?:rispondere|confermare)"
    rf"|trovo{_SEGURIDAD}))",
    # Chinese, Japanese
    r"(?:抱歉|对不起|很抱歉)?[，,]?(?:我)?(?:不知道|无法(?:回答|确定|找到(?!任何(?:风险|问题|危险))|提供))",
    r"(?:提供的)?(?:文档|文件|资料|上下文)(?:中)?(?:没有|未)(?:提到|提及|说明|包含|给出)",
    r"(?:申し訳ありませんが|すみませんが)?[、,]?(?:わかりません|分かりません)",
)

# What one may feel free to do without a fact being stated: talk. "Feel free to drink alcohol" permits.
_TALK: Final = (
    r"(?: (?:ask|reach|contact|let|share|provide|send|tell|e-?mail|call us|write|message|get (?:in touch"
    r"|back)|come"
    r"|return|follow up|specify|clarify|elaborate|request|inquire|enquire|submit|post|comment|mention"
    r"|drop|explore"
    r"|browse|check|consult|seek|rephrase|give (?:me|us)|visit|chat|say (?:hi|hello)|refer|try (?:again"
    r"|asking))\b"
    r"| ?[.!]?$)"
)

#: The writer offers help or asks for more; German, French and Spanish after the English.
OFFERS: Final = (
    r"(?:please |just |and |so |also )?(?:let me know\b"
    rf"|(?:feel free|(?:don't|do not) hesitate)(?:,? and)?(?: to)?{_TALK})",
    r"(?:if (?:you|there|anything|something)|should you|in case you)\b[^.:;]{0,160}?,? (?:please |just "
    r"|then )?(?:let me know"
    rf"|(?:feel free|(?:don't|do not) hesitate)(?=(?: to)?{_TALK})"
    r"|i can (?:help|try|also|look|explain|provide|give)|i'd be (?:happy|glad)|i would be (?:happy|glad)"
    r"|i'll be (?:happy|glad)|i'm (?:happy|glad|here)"
    r"|i am (?:happy|glad|here)|just ask|please ask|ask away)\b",
    r"(?:i'd|i would|i'll|i will|i'm|i am) (?:be )?(?:happy|glad|here) to (?:help|assist|answer|explain"
    r"|provide|look|go|clarify|elaborate)\b",
    r"(?:however,? |but )?i can (?:also |only )?(?:help|assist|provide you with|offer|share"
    r"|give you) (?:you )?[^\d,;:]{0,80}"
    r"\b(?:information|help|overview|perspectives?|details|more|assistance|suggestions|tips|guidance)\b",
    r"i can (?:also )?(?:help|assist) you(?: find(?: out)?| with)?\b",
    r"(?:i (?:hope|trust)|hope) (?:this|that|it|my answer|these)\b[^,;:]{0,40}?"
    r"\b(?:helps?|helpful|useful|clarif|answers?|clear)\w*",
    r"(?:could|can|would|will) you (?:please )?(?:clarify|provide|specify|rephrase|tell me|share|give me)\b",
    r"please (?:provide|share|clarify|specify|rephrase|give me)\b[^.;:]{0,60}\b(?:details?|information"
    r"|context|question|document|clarification)s?\b",
    r"(?:wenn|falls|sollten) (?:du|sie|ihr)\b[^.;:]{0,120}(?:gern|gerne|sagen sie|lassen sie|fragen sie"
    r"|melden sie)\b",
    r"(?:bitte )?(?:lassen sie (?:es )?mich wissen|sag(?:en sie)? (?:mir )?(?:einfach )?bescheid"
    r"|gerne helfe ich)\b",
    r"n'hésitez pas à (?:me |nous |le |la |les )?(?:demander|poser|contacter|revenir|préciser|consulter"
    r"|écrire"
    r"|appeler|dire|faire|solliciter|partager)\b",
    r"(?:no dud(?:es|e|en) en (?:preguntar|contactar|consultar|ped|escribi|decir|llamar|compartir|hac"
    r"|pon)\w{0,12}"
    r"|avísame|házmelo saber|hágamelo saber)\b",
)

#: Whole sentences that are courtesy, or answer a yes-or-no question and nothing else, or hedge.
GREETINGS: Final = (
    r"(?:hi|hello|hey|greetings|welcome|good (?:morning|afternoon|evening|day)|dear)(?:,? (?:there|again"
    r"|everyone|all|(?:mr|mrs|ms|dr)\.? \w{1,30}|[^\W\d]\w{0,20}))?",
    r"(?:many |a lot of )?(?:thanks|thank you)(?: (?:so|very) much)?(?: (?:for|in) [a-z' ]{1,60})?",
    r"(?:that's |that is |what )?(?:a |an )?(?:great|good|excellent|interesting|important) question",
    r"(?:you're|you are) (?:very |most )?welcome",
    r"(?:bye|goodbye|take care|see you(?: soon)?|have a (?:great|nice|good|lovely|wonderful) (?:day|trip"
    r"|evening|one|weekend|stay)|good luck|safe travels|best(?: regards| wishes)?|kind regards|cheers"
    r"|congratulations|enjoy(?: your (?:trip|stay|meal|day))?)",
    r"(?:sure|of course|certainly|absolutely|definitely|gladly|no problem|my pleasure|happy to help"
    r"|glad to help|got it|understood|okay|ok|alright|great|perfect|sure thing)"
    r"(?:,? (?:thing|i can help(?: you)?(?: with that)?|i'd be happy to help|i'll help|let's [a-z ]{1,40}))?",
    r"(?:i'm |i am )?sorry(?: (?:about that|to hear that|for (?:the|any) (?:inconvenience|confusion)))?"
    r"|my apologies|i apologi[sz]e(?: for (?:the|any) [a-z ]{1,30})?",
    r"hallo(?: zusammen)?|guten (?:tag|morgen|abend)|moin|servus|grüezi|gerne?|gern geschehen"
    r"|vielen dank(?: für [^\d,.;:]{1,50})?|danke(?: schön)?|natürlich|selbstverständlich|klar"
    r"|auf wiedersehen",
    r"bonjour|bonsoir|salut|merci(?: beaucoup)?|bien sûr|avec plaisir|au revoir|de rien",
    r"hola|buenos días|buenas (?:tardes|noches)|gracias|muchas gracias|claro(?: que sí)?|por supuesto"
    r"|de nada|adiós",
    r"ciao|buongiorno|buonasera|grazie|prego|certo|olá|bom dia|boa tarde|obrigad[oa]|привет|здравствуйте"
    r"|спасибо|你好|您好|谢谢|こんにちは|ありがとうございます|नमस्ते|مرحبا|안녕하세요",
)

ANSWERS: Final = (
    r"(?:yes|no|yep|nope|yeah|correct|incorrect|true|false|right|exactly|indeed|not (?:really|exactly|quite"
    r"|necessarily|at all|always)|maybe|perhaps|possibly|probably"
    r"|absolutely not|definitely not|of course not|in short|short answer|the short answer is|agreed)"
    r"(?:,? (?:yes|no|it is|it does|it can|it isn't|it is not|it doesn't|it does not|you can|you can't"
    r"|you cannot|you may|you must|you should|you do|they do|they are|they can|there is|that's (?:right"
    r"|correct|true|not correct)|that is (?:right|correct|true)|absolutely|definitely|indeed|sir|ma'am"
    r"|not (?:really|exactly|quite|necessarily|at all|always)))?",
    r"(?:that's|that is|this is|you're|you are) (?:right|correct|true|not (?:right|correct|true)|incorrect"
    r"|wrong|false)",
    r"ja|nein|doch|genau|richtig|stimmt|vielleicht|oui|non|si|sí|exactement|peut-être|exacto|quizás|sim|não"
    r"|да|нет|是的?|不是?|对|はい|いいえ|हाँ|नहीं|نعم|لا|네|아니요",
)

HEDGES: Final = (
    r"(?:well,? )?(?:it|that|this|the answer) (?:really |all |largely |very much |always )?(?:depends"
    r"|varies|may vary|can vary|could vary|might vary)(?: on (?:a number of|several|many|various|the|your"
    r"|individual) (?:factors|circumstances|situation|needs|case|context|details))?",
    r"(?:individual |your )?(?:results|mileage|experiences?|details) (?:may|can|will) vary",
    r"it(?:'s| is) (?:hard|difficult|impossible|not possible|not easy) to (?:say|tell|know"
    r"|be sure)(?: for (?:sure|certain))?",
    r"(?:i (?:think|believe|guess|suppose|hope) (?:so|not)|who knows|hard to say|not that i know of)",
    r"(?:das|es) (?:kommt (?:ganz )?darauf an|hängt davon ab)|ça dépend|cela dépend|depende",
)

#: Sentences about the answer itself.
META: Final = (
    r"(?:so,? |sure,? |certainly,? |of course,? |okay,? |great,? |yes,? |absolutely,? )?(?:here(?:'s| is"
    r"| are)|below(?: is| are)|listed below|these are)\b(?:[^.;:]{0,200}:|[^.;:\d]{0,60}\b(?:summary"
    r"|overview|breakdown|list|answer|what i found|information|details|steps|explanation|tips|guide|outline"
    r"|response)\b[^.;:\d]{0,80}[!.]?)$",
    r"(?:in this (?:answer|response|section)|to (?:summari[sz]e|conclude|sum up)|in (?:summary|conclusion"
    r"|short|brief|other words)|overall|summary|tl;dr|note|please note|important|"
    r"for (?:example|instance)|in addition|additionally|that (?:being )?said)[,:.]?$",
    r"(?:in this (?:answer|response)|now|next|first),? (?:i will|i'll|let me|let's) ",
    r"(?:let me|let's|i will|i'll) (?:explain|summari[sz]e|break (?:this|it|that) down|look|take a look"
    r"|walk you|go (?:over|through)|start|begin|outline|review)\b[^,;]{0,80}[:.!]$",
    r"(?:according to|based on|as (?:stated|described|mentioned) in|from|per) [^,;.]{0,160}[:,]$",
)

#: Sentences that lead over to what follows; each ends with a colon.
LEAD_INS: Final = (
    r"(?:based on|according to) [^,;.:]{0,120},? (?:here(?:'s| is| are))\b[^.;:]{0,160}:",
    r"(?:[^\d.,;:!?]{0,100} )?(?:as follows|the following|following [a-z ]{1,40}|include|includes|including"
    r"|such as|are|is|steps|namely|means that|be) ?:$",
    r"hier (?:ist|sind|finden sie) [^.;]{0,160}:$|(?:zusammenfassung|folgende[ns]? [^.;\d]{0,80}"
    r"|laut [^.;]{0,120}):$",
    r"voici [^.;]{0,160}:$|(?:en résumé|selon [^.;]{0,120}) ?:$",
    r"(?:aquí (?:está|tienes|tiene|están)|a continuación|estos son) [^.;]{0,160}:$|(?:en resumen"
    r"|según [^.;]{0,120}):$",
)

#: First words of a question.
INTERROGATIVES: Final = frozenset(
    """
    what when where who whom whose why how which is are am was were do does did can could would will shall
    should may might have has had isn't aren't don't doesn't didn't can't couldn't wouldn't won't
    shouldn't haven't hasn't anything any and or so ready need want wann wo wer wen wem wessen warum wieso
    weshalb wie welche welcher welches ist sind war waren hat haben kann können könnte könnten möchten
    möchtest soll sollen darf dürfen wird werden gibt brauchen benötigen que quoi quand où qui pourquoi
    comment combien quel quelle quels quelles est-ce voulez-vous souhaitez-vous pouvez-vous avez-vous
    puis-je qué cuándo dónde quién quiénes por cómo cuánto cuál cuáles quieres quiere necesitas necesita
    puedo te le che cosa quando dove chi perché come quanto quale vuoi vuole o onde quem porquê quer
    """.split()  # noqa: SIM905
)

#: A number with its unit or currency, in lower case: what a line is rarely there for without stating it.
AMOUNT: Final = (
    r"[$€£¥₹] ?\d|\d ?[€£¥₹%°]"
    r"|(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|fifty|sixty"
    r"|ninety|hundred|thousand|million|half|zwei|drei|fünf|zehn|deux|trois|cinq|dix|dos|tres|cinco"
    r"|diez))[ -]?"
    r"(?:mg|mcg|µg|μg|g|kg|ml|l|iu|mmol|cm|mm|m|km|ft|kcal|mmhg|grams?|milligrams?|micrograms?|kilograms?"
    r"|milliliters?|millilitres?|liters?|litres?|tablets?|pills?|capsules?|puffs?|drops?|doses?|sprays?"
    r"|units?"
    r"|teaspoons?|times|percent|dollars?|euros?|pounds?|cents?|usd|eur|gbp|seconds?|minutes?|hours?|hrs|days?"
    r"|weeks?|months?|years?|degrees?|gb|mb|users?|people|guests|tage[n]?|wochen|stunden|monate[n]?|jours?"
    r"|mois|heures|días|semanas|meses|horas|gramm|tabletten|comprim(?:és|idos))\b"
)

#: Verdicts that state without a verb: "Safe with alcohol".
VERDICT: Final = (
    r"(?:(?:not|completely|perfectly|always|generally|usually|never|absolutely|totally|fully|100%) )?"
    r"(?:safe|unsafe|harmless|fine|ok|okay|allowed|permitted|forbidden|prohibited|approved|compatible"
    r"|legal|illegal"
    r"|suitable|dangerous) (?:with|for|in|during|to|while|when|by) "
)

#: Words in front of a verb that make it part of a question or of a part of the sentence.
EMBEDDERS: Final = frozenset(
    """
    what when where who whom whose why how which that if whether before after while until till unless as
    because since once ob wann wo wer warum wie welche welcher welches dass wenn si que qui quoi quand
    où pourquoi comment quel quelle qué cuándo dónde quién cómo cuál cuáles
    """.split()  # noqa: SIM905
)

#: Verbs that make a statement of a line.
STATING: Final = frozenset(
    """
    is are was were can may must should will would could cannot can't won't isn't aren't mustn't
    shouldn't don't doesn't has have had costs cost never needs requires causes cures prevents
    contains means lasts expires applies doubles
    ist sind war waren kann können darf dürfen muss müssen soll sollte sollten wird werden kostet hat
    est sont peut peuvent doit doivent coûte está están puede pueden debe deben cuesta tiene
    """.split()  # noqa: SIM905
)

#: Orders, at the beginning of a clause.
ORDERS: Final = frozenset(
    "never always avoid double drink ignore don't exceed skip mix combine swallow".split()  # noqa: SIM905
)

#: Info strings of fences that hold no code.
PROSE_FENCES: Final = frozenset(
    """
    markdown md text txt plain plaintext quote none rst prose answer response note info message email
    letter summary important
    """.split()  # noqa: SIM905
)
