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

_EXCUSE: Final = _ADVERB + _SORRY
_ENGLISH_ABSTENTIONS: Final = (
    r"(?:i|we) (?:really |just |simply )?(?:do not|don't|did not|didn't) (?:actually "
    r"|currently )?"
    r"(?:know|have (?:access|any|enough|sufficient|the|that|this|information|data|details|a (?:definitive"
    r"|clear|reliable)|personal|opinions|feelings)|see (?:any|a|that)"
    r"|find|recall|understand your)\b",
    rf"(?:i|we) ?{_ABLE} (?:find|answer|provide|determine|locate|say|tell|confirm|verify"
    rf"|help|assist|give|access"
    r"|comment|see|offer|share|respond|discuss|comply|do that|fulfil)\b",
    r"(?:i|we) (?:found no|have no|see no) (?:information|mention|answer|data|details"
    r"|idea|evidence|record|reference)\b",
    r"(?:i'm|i am|we're|we are) (?:not (?:entirely |completely |quite |really )?(?:sure"
    r"|certain|aware|familiar)|unsure|uncertain)\b",
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
    rf"(?:information|mention|details?|data|answer|reference|indication)s?\b(?=[^.]{{0,200}}\b{_DOCUMENTS}"
    rf"| (?:about|on|regarding|available|provided|given|here|to ))",
    r"(?:no|not enough|insufficient) (?:specific |explicit |relevant |further )?(?:information"
    r"|details?|data|answer|mention)s? "
    r"(?:(?:is|are|was|were) (?:available|given|provided|found|mentioned)|(?:about|on|regarding|of|in) )",
    rf"(?:it|this|that) (?:is|was) not (?:stated|specified|mentioned|clear|given|covered|addressed"
    rf"|known)(?: (?:in|from|by) {_DOCUMENTS}|$)",
    rf"based on {_DOCUMENTS},? (?:i|we|it|there) (?:{_ABLE}|don't|do not|is not|isn't|is no)\b",
)

#: The writer does not know, or the documents do not say.
ABSTENTIONS: Final = (
    # What they have in common is tried once.
    f"{_EXCUSE}(?:{'|'.join(_ENGLISH_ABSTENTIONS)})",
    # German
    r"(?:leider )?(?:das )?(?:weiß|wissen) (?:ich|wir) (?:das )?(?:leider )?(?:nicht|nichts)\b",
    r"(?:leider )?(?:ich|wir) (?:weiß|wissen|kann|können|habe|haben|konnte|konnten|finde"
    r"|finden)[^,.;:]{0,80} "
    r"(?:nicht|nichts|keine|keinen|kein)\b",
    r"(?:leider )?(?:kann|konnte|habe|können|konnten|haben) (?:ich|wir)[^,.;:]{0,80} (?:nicht|nichts|keine"
    r"|keinen|kein)\b",
    r"(?:leider )?(?:die|den|in den|in der|aus den|das|der) (?:vorliegenden |bereitgestellten |angegebenen "
    r"|verfügbaren )?"
    r"(?:dokumente[n]?|unterlagen|quellen|texte[n]?|informationen|kontext|text|dokumentation)[^,.;:]{0,60} "
    r"(?:nicht|nichts|keine|keinen|kein|keinerlei)\b",
    r"(?:leider )?(?:dazu|hierzu|darüber|dafür) (?:gibt es|liegen|habe ich|finde ich"
    r"|steht)[^,.;:]{0,60} (?:nicht|nichts|keine|keinen|kein)\b",
    # French
    r"(?:malheureusement,? |désolée?,? )?je (?:ne (?:sais|dispose|trouve|peux|suis|connais)"
    r"|n'ai) [^,.;:]{0,30}?(?:pas|aucune?)\b",
    r"(?:malheureusement,? )?(?:les|le|la|ces|ce) (?:documents?|sources?|textes?|contexte|informations?"
    r"|passages?)[^,.;:]{0,40} "
    r"(?:ne |n')[^,.;:]{0,40}(?:pas|aucune?|rien)\b",
    r"(?:malheureusement,? )?(?:aucune information|il n'y a (?:pas|aucune))\b",
    # Spanish
    r"(?:lamentablemente,? |lo siento,? (?:pero )?|desafortunadamente,? )?(?:yo )?no (?:lo sé|sé"
    r"|tengo (?:información|datos|suficiente)"
    r"|puedo (?:responder|encontrar|confirmar|determinar|ayudar)|encuentro|encontré|dispongo"
    r"|estoy segur[oa])",
    r"(?:lamentablemente,? |desafortunadamente,? )?(?:los|el|la|las|estos) (?:documentos?|fuentes?|textos?"
    r"|contexto|información|pasajes?)"
    r"[^,.;:]{0,40} no (?:dice|dicen|menciona|mencionan|contiene|contienen|especifica|especifican|indica"
    r"|indican|incluye|incluyen"
    r"|proporciona|proporcionan|aborda|abordan)\b",
    r"no hay (?:información|datos|mención)\b",
    # Portuguese, Italian
    r"(?:infelizmente,? )?(?:eu )?não (?:sei|tenho (?:informações|dados)|encontrei|posso (?:responder"
    r"|confirmar))",
    r"(?:purtroppo,? )?(?:non lo so|non (?:so|ho (?:informazioni|trovato)|posso (?:rispondere|confermare)"
    r"|trovo))",
    # Chinese, Japanese
    r"(?:抱歉|对不起|很抱歉)?[，,]?(?:我)?(?:不知道|无法(?:回答|确定|找到|提供))",
    r"(?:提供的)?(?:文档|文件|资料|上下文)(?:中)?(?:没有|未)(?:提到|提及|说明|包含|给出)",
    r"(?:申し訳ありませんが|すみませんが)?[、,]?(?:わかりません|分かりません)",
)

#: The writer offers help or asks for more; German, French and Spanish after the English.
OFFERS: Final = (
    r"(?:please |just |and |so |also )?(?:let me know|feel free to|don't hesitate to|do not hesitate to)\b",
    r"(?:if (?:you|there)|should you|in case you)\b[^.:;]{0,160}?,? (?:please |just |then )?(?:let me know"
    r"|feel free|don't hesitate|do not hesitate"
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
    r"n'hésitez pas à\b",
    r"(?:no dudes? en|no dude en|avísame|házmelo saber|hágamelo saber)\b",
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
