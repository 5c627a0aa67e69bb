"""Words whose full stop does not, or need not, end a sentence.

Compared without the last full stop ("e.g" for "e.g."). Whether a listed word ends the sentence depends on
what follows; each set says how. The lists hold what answers of assistants contain, in the languages they are
mostly written in, after the suppression lists of CLDR and common usage.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Never end a sentence; compared as written, since "ms" and "gen" without a capital are other words.
NEVER: Final = _words(
    """
    Dr Drs Mr Mrs Ms Mx Prof Rev Hon Gov Sen Rep Gen Col Lt Sgt Capt Cpl Maj Cmdr Adm Pres Supt Msgr Fr
    Ste Messrs Mmes Mlle Mme Sr Sra Srta Dra Dña Ud Uds Vd Exmo Exma Excmo Ing Dipl Mag Hr Fra Dhr Mevr
    Sig Dott Avv Geom Rag vs Vs e.g E.g i.e I.e cf Cf viz approx Approx appx ca Ca esp resp incl excl
    z.B z.b d.h D.h Z.B u.a v.a o.ä i.d.R ggf bzw evtl inkl exkl zzgl abzgl vgl Vgl sog gem ebd p.ex
    p.ej env cap ej Ej bijv d.w.z o.a m.b.t nl incl. np tj tzn m.in т.е т.к напр см ул гр им EE a.k.a
    w/o Hrsg bzgl Bhf
    """
)

#: End no sentence before a number ("No. 5", "p. 12", "Fig. 3"), otherwise they do; compared in lower case.
BEFORE_NUMBER: Final = _words(
    """
    no nos nr nrs num núm nº n° n p pp pg pgs pag pág págs s ss f ff fig figs abb tab eq eqs gl sec secs
    sect ch chap kap cap vol vols bd art arts §§ § abs para paras par pt pts ex exs app anh ziff lit rn
    rdnr ver v rev ed cl reg sched tel tél fax ext apt ste rm bldg bl blz pos ref refs ann anm str р стр
    рис табл ст п гл тел approx circa ca max min jan feb mar apr jun jul aug sep sept oct nov dec
    """
)

#: May end a sentence: they do before a word that usually begins one. Compared in lower case.
MAYBE: Final = _words(
    """
    inc ltd co corp llc plc gmbh bros jr sr esq dept univ assn assoc ave blvd rd ln hwy sq u.s u.k u.n
    u.s.a e.u d.c l.a n.y a.m p.m b.c a.d b.c.e c.e ph.d m.d b.a m.a b.sc m.sc j.d d.d.s r.n mass calif
    conn fla penn tex wash ariz colo wis mich minn jan feb mar apr jun jul aug sep sept oct nov dec mon
    tue tues wed thu thur thurs fri sat sun al ibid op cit gov st mio mrd tsd stk std mil mln млн млрд
    тыс руб г ft in mt uu
    """
)

#: Month names behind an ordinal ("3. März"), which German and its neighbours write with a full stop.
MONTHS: Final = _words(
    """
    Januar Jänner Februar Feber März April Mai Juni Juli August September Oktober November Dezember
    Jan Feb Mär Apr Jun Jul Aug Sep Sept Okt Nov Dez Jahrhundert Jahrhunderts Jh Jhd Klasse Auflage Etage
    Stock Quartal
    Halbjahr Weltkrieg Weltkriegs Bundesliga Absatz Lebensjahr Lebensjahres Monat Tag Woche
    """
)

#: Words in front of an ordinal ("am 3.", "der 2."), in lower case.
BEFORE_ORDINAL: Final = _words("am der den dem des das vom zum im ab seit bis beim ersten el la den")

#: Capitalised words that usually begin a sentence and seldom continue a name.
STARTERS: Final = _words(
    """
    The A An This That These Those It Its It's He She They We You I I'm My Your His Her Their Our There
    Here If In On At By For From To With Without As When While Where Who What Why How Which Whether
    Since Because Although Though Even After Before During Until Unless Once However Therefore Thus
    Hence Moreover Furthermore Additionally Also Besides Instead Otherwise Then Next Finally First
    Second Third Overall Generally Typically Usually Often Sometimes Note Please And But Or So Yet Nor
    No Not Yes Some Many Most Several All Both Each Every Other Another Any Such More Less Only Just
    According Based Depending Contact Take Use Do Does Did Is Are Was Were Can Could Should Would Will
    May Might Must Has Have Had Be Been Once Under Over Between Through About Despite Given Let Make See
    Visit Call Never Always Customers Patients Users Employees People Refunds Orders Prices Tickets
    Doctors Children Adults Today Tomorrow Der Die Das Ein Eine Es Er Sie Wir Ihr Dies Diese Dieser
    Dieses Wenn Falls Bei Nach Vor Zu Zum Zur Mit Für Von Und Aber Oder Auch Außerdem Jedoch Daher Dann
    Nur Alle Bitte Nein Ja Im Am An Auf Aus Als Ab Le La Les Un Une Des Il Elle Ils Elles Nous Vous Ce
    Cet Cette Ces Si Dans Pour Par Avec Sans Mais Donc Cependant El Los Las Una Unos Esto Esta Este
    Estos Estas Eso Ello Si En Con Por Para Pero Sin También Además Según Es Son Se Lo Gli Questo Questa
    Nel Per O Os As Uma Não No Na Это Этот Эта Эти Он Она Они Мы Вы Если В На По При Для Но Однако Также
    Когда
    """
)

#: Every beginning of a starter, so that a word that can't become one is settled by its first letters.
STARTER_PREFIXES: Final = frozenset(word[:n] for word in STARTERS for n in range(1, len(word) + 1))
