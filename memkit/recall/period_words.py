"""How people name periods, by language: words, and templates of phrases made of them.

Only data; `memkit.recall.periods` reads it. A template is a regular expression in which {U} stands for a unit,
{N} for a number, {W} for a day of the week, {M} for the name of a month, {m} for it or its abbreviation, {D}
for a day of the month, {O} for the number of a month, {Y} for a year, {T} for one of `days`, {S} for a season, and
{E} for a weekend. Spaces in it stand for any white space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

Count = tuple[int, int]
"""The least and the most that a number can mean: "a few days" is two to seven."""


class Language(NamedTuple):
    """The words of a language.

    `days` maps words to days before today, `bare_days` those that `bare` has. `seasons` are spring, summer, autumn,
    and winter of the north. `units` maps them to day, week,
    month, year, or hour. `phrases` are periods wherever they stand, as pairs of kind and template; `bare`
    ones only after one of the words `at` their kind, or in a question about nothing else; `present` are the
    words for today and others that need a sign (`past`) that the question is about what was done. `since`,
    `until`, `before`, and `after` stand in front of a period, `since_behind` and the like behind it, `join`
    between two. A phrase does not count behind `not_behind` or in front of `not_before`. `generic` are the
    words of questions about work as such.
    """

    days: Mapping[str, int]
    present: str
    past: str
    units: Mapping[str, str]
    numbers: Mapping[str, Count]
    weekdays: Sequence[str]
    months: Sequence[str]
    short_months: Sequence[str]
    weekend: str
    seasons: Sequence[str]
    phrases: Sequence[tuple[str, str]]
    bare: Sequence[tuple[str, str]]
    at: Mapping[str, str]
    since: str
    until: str
    before: str
    after: str
    join: str
    between: str
    not_behind: str
    not_before: str
    generic: str
    since_behind: str = ""
    until_behind: str = ""
    before_behind: str = ""
    bare_days: Mapping[str, int] = MappingProxyType({})
    is_spaced: bool = True


def _counts(words: str, first: int = 1) -> dict[str, Count]:
    return {word: (n, n) for n, word in enumerate(words.split(), first)}


_UI_WORDS = (
    r"[\s-]+(?:button|column|function|method|variable|field|label|tab|filter|view|widget|string|word|key|option|"
    r"page|helper|flag|constant|enum|macro|class|driver|route|endpoint|template|icon|link|badge|dropdown|"
    r"selector|picker|preset|range|parameter|argument|header|text|number|format|value|chart|query|handler|"
    r"component|test|fixture|branch|import|token|in (?:utc|iso|words)\b)s?(?![\w-])"
)
"""Nouns that make a period the name of a thing: "the last week filter", "Sunday driver class"."""

_ENGLISH = Language(
    days={
        "(?:the )?day before yesterday": 2, "(?:the )?day after yesterday": 0, "yesterday(?: (?:morning|afternoon|evening|night))?": 1,
        "last night": 1, "(?:earlier|late|later) today": 0, "this (?:morning|afternoon|evening)": 0, "tonight": 0,
    },
    present="today",
    past=r"\b(?:did|was|were|had|have|has|been|done|made|found|wrote|written|broke|said|told|went|came|got|chose|"
    r"chosen|left|ran|we|i|(?!red\b|need\b|feed\b|embed|speed\b|seed\b|shed\b)\w+ed)\b",
    units={"hours?": "hour", "days?": "day", "weeks?": "week", "months?": "month", "years?": "year"},
    numbers={
        **_counts("one two three four five six seven eight nine ten eleven twelve"),
        "an?": (1, 1), "a couple(?: of)?": (2, 3), "couple(?: of)?": (2, 3), "(?:a )?few": (2, 7), "several": (2, 7),
    },
    weekdays="monday tuesday wednesday thursday friday saturday sunday".split(),
    months=["january", "february", "march", "april", "(?-i:May|MAY)", *(
        "june july august september october november december".split())],
    short_months="jan feb mar apr (?-i:May) jun jul aug sept? oct nov dec".split(),
    weekend="weekend",
    seasons=["spring", "summer", "(?:autumn|fall)", "winter"],
    phrases=[
        ("days", "{T}(?:['’]s)?"),
        ("last", r"(?:the )?(?:last|previous) (?P<unit>week|month|year)(?:['’]s)?(?! of\b)"),
        ("rolling", r"(?:(?:in|over|during|within|for) )?(?:the )?(?:last|past|previous) {N} {U}"),
        ("rolling", r"(?:in|over|during|within) the past (?P<unit>week|month|year)"),
        ("last", r"(?:the )?past (?P<unit>week|month|year)(?! of\b)"),
        ("this", r"(?:earlier |so far )?this (?P<unit>week|month|year)(?:['’]s)?"),
        ("before_last", r"(?:the )?(?P<unit>week|month|year) before last"),
        ("ago", r"(?:about |around |some )?{N} {U} ago"),
        ("weekday_last_week", r"(?:on )?{W},? (?:of )?last week"),
        ("weekday_last_week", r"last week(?:['’]s)?,? (?:on )?{W}"),
        ("weekday_this_week", r"(?:on )?{W},? (?:of )?this week"),
        ("weekday", r"(?:on )?(?:last|this past|this) {W}(?:['’]s)?(?: (?:morning|afternoon|evening|night))?"),
        ("weekend", r"(?:over |at |on |during )?(?:the )?last {E}"),
        ("this_weekend", r"(?:over|at|on|during|this) (?:the |this )?(?:past )?{E}"),
        ("month", r"(?:in |during |from |of )?last {M}"),
        ("week_of", r"(?:in |during )?(?:the )?week of (?:the )?{D}(?:st|nd|rd|th)?(?: of)? {m}(?:,? {Y})?"),
        ("week_of", r"(?:in |during )?(?:the )?week of {m} {D}(?:st|nd|rd|th)?(?:,? {Y})?"),
        ("date", r"{m}\.? {D}(?:st|nd|rd|th)?,? {Y}"),
        ("date", r"{D}(?:st|nd|rd|th)?(?: of)? {m}\.?,? {Y}"),
        ("date", r"(?:the )?{D}(?:st|nd|rd|th)(?: of)? {m}"),
        ("date", r"{m}\.? {D}(?:st|nd|rd|th)"),
        ("month", r"(?:in |during |from |of )?{M}(?: of)?,? {Y}"),
        ("month", r"(?:in |during |from |of )(?P<month>may) {Y}"),
        ("season", r"(?:in |during |from |of )?(?:the )?(?:last|this) {S}"),
        ("season", r"(?:in |during |from )?(?:the )?{S}(?: of)? {Y}"),
    ],
    bare=[
        ("weekday", r"{W}(?:['’]s)?(?: (?:morning|afternoon|evening|night))?"),
        ("date", r"{m} {D}"),
        ("date", r"{D} {m}"),
        ("month", r"{M}"),
        ("iso", r"{Y}-{O}-{D}"),
        ("iso_month", r"{Y}-{O}"),
        ("year", r"{Y}(?=\s*(?:$|[?!,;.](?:\s|$)|(?:we|i|did|about|with|was|were)\b))"),
        ("week_number", r"(?:calendar )?week (?P<week>\d\d?)(?: (?:of )?{Y})?"),
        ("season", "{S}"),
    ],
    at={
        "weekday": "on|from|over|of", "date": "(?:on|from|of|at|for|as of)(?: the)?|the", "month": "in|during|from|over|(?:in )?(?:early|mid|late)",
        "iso": "on|from|of|at|for|dated", "iso_month": "in|during|from|of", "year": "in|during|from|back in",
        "week_number": "in|during|of|from",
    },
    since="(?:ever )?since|starting(?: on)?",
    until="until|till|up to|through",
    before="(?:before|prior to)",
    after="after",
    join="to|and|until|till|through|thru|up to|-|–",
    between="between|from",
    not_behind=r"(?:every|each|any|next|per|shows?|display(?:s|ed)?|prints?|render(?:s|ed)?|labels?|text|says?|pars(?:e|es|ing)|"
    r"formats?|formatting|returns?|strings?|called|named|keyword|literal|retention(?: of)?|retain|keeps?|cache|start|starts|"
    r"starting|begin|begins|runs|fires|triggers|falls|ends|scheduled|weekday|(?<!\bin )the word|an?|not|except|by|api|"
    r"version|release|rfc|jobs?|cron|iso|date|week|expires?|valid|older than|newer than|more than|less than)"
    r"(?: (?:logs?|data|of|for|from|on|in|to|the|an?|as|with))*",
    not_before=_UI_WORDS + r"|(?:['’]s)? dates?\b|\s*\d|\s+(?:or|vs)\b",
    generic="""
        a about above accomplish accomplished achieve achieved activities activity actually add added after again all also am
        an and any anything are as at attempted be because been before being between bit both bring brief build built but by
        can change changed changes claude code coded commit commits committed complete completed could cover covered day days deal
        dealt decide decided decision decisions describe did digest discuss discussed discussion discussions do does doing
        done during else entries entry even everything exactly far find finish finished fix fixed for from get give go going
        got had happen happened happening has have having here history how i if implement implemented in into is it its job
        just know lately learn learned let list log look looked made main make many me memory mention mentioned more most much
        my new no not of off ok on once only or other our out outcome outcomes over overview please progress project projects
        quick quickly recall recap recent recently remember remind report result results review say session sessions ship
        shipped short show so some something spend spent standup start started status stuff subject subjects sum summaries
        summarise summarize summary talk talked tell than that the their them theme themes then there these they thing things
        this those through time to together topic topics touch touched tried try turn turns up update updates us user very
        was we week were what when where which while who why will with within work worked working works would write wrote you
        your s t d ll ve re m
    """,
)

_GERMAN = Language(
    days={
        "vorgestern": 2, "gestern(?: (?:abend|nacht|morgen|früh|vormittag|nachmittag))?": 1, "letzte nacht": 1,
        "heute (?:morgen|früh|vormittag|mittag|nachmittag|abend)": 0,
    },
    present="heute",
    past=r"\b(?:haben|habe|hat|hatten?|wurden?|war|waren|ging|kam|geworden|ge\w{2,}(?:t|en))\b",
    units={"stunden?": "hour", "tage?n?": "day", "wochen?": "week", "monat(?:en?|s)?": "month", "jahr(?:en?|e?s)?": "year"},
    numbers={
        **_counts("eine?[mnr]? zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"),
        "ein paar": (2, 7), "einige[nr]?": (2, 7), "wenigen": (2, 7), "mehreren": (2, 7), "paar": (2, 7),
    },
    weekdays=["montags?", "dienstags?", "mittwochs?", "donnerstags?", "freitags?", "(?:samstags?|sonnabends?)", "sonntags?"],
    months=["(?:januar|jänner)", "februar", "(?:märz|maerz)", "april", "(?-i:Mai)", *(
        "juni juli august september oktober november dezember".split())],
    short_months="jan feb mär apr (?-i:Mai) jun jul aug sept? okt nov dez".split(),
    weekend="wochenende",
    seasons=["(?:frühling|frühjahr)", "sommer", "herbst", "winter"],
    phrases=[
        ("days", "{T}"),
        ("last", r"(?:in |während )?(?:der )?(?:letzte[rn]?|vorige[rn]?|vergangene[rn]?) (?P<unit>woche)"),
        ("last", r"(?:im |den )?(?:letzte[nrms]*|vorige[nrms]*|vergangene[nrms]*) (?P<unit>monats?|jahre?s?)"),
        ("before_last", r"(?:in der |im )?vorletzte[nrms]* (?P<unit>woche|monat|jahr)"),
        ("this", r"(?:in )?diese[rnms]? (?P<unit>woche|monat|jahr)"),
        ("rolling", r"(?:in |während )?(?:den |der |die )?(?:letzten|vergangenen) {N} {U}"),
        ("ago", r"(?:etwa |ungefähr )?vor {N} {U}"),
        ("weekday_last_week", r"(?:am )?{W} (?:der )?(?:letzter|letzten|vorige[rn]|vergangene[rn]) woche"),
        ("weekday_last_week", r"letzte woche {W}"),
        ("weekday_this_week", r"(?:am )?{W} dieser woche"),
        ("weekday", r"(?:am |an )?(?:letzte[nrm]|vergangene[nrm]|diesen) {W}"),
        ("weekend", r"(?:am )?(?:letzte[sn]|vergangene[sn]|vorige[sn]) {E}"),
        ("this_weekend", r"(?:am|dieses) {E}"),
        ("month", r"(?:im |in )?letzte[nrm] {M}"),
        ("date", r"(?:am |dem |den )?{D}\. ?{m}(?: {Y})?"),
        ("date", r"(?:am|vom|dem|den) {D}\. ?{O}\.(?: ?{Y})?"),
        ("month", r"(?:im |in )?{M} {Y}"),
        ("season", r"(?:im )?(?:letzten |diesen |vergangenen )?{S} {Y}"),
        ("season", r"(?:im )?(?:letzten|letztes|diesen|dieses|vergangenen) {S}"),
        ("week_number", r"(?:in )?(?:der )?(?:kw|kalenderwoche) ?(?P<week>\d\d?)(?: {Y})?"),
    ],
    bare=[("weekday", "{W}"), ("month", "{M}"), ("iso", r"{Y}-{O}-{D}"), ("year", r"{Y}(?=\s*(?:$|[?!,;]))"), ("season", "{S}")],
    at={"weekday": "am|vom|an", "month": "im|vom", "iso": "am|vom", "year": "in|im jahr|jahr"},
    since="seit(?: dem| der)?|ab(?: dem)?",
    until="bis(?: zum| zur)?",
    before="vor(?: dem| der)?",
    after="nach(?: dem| der)?",
    join="bis(?: zum)?|und|-|–",
    between="zwischen|von|vom",
    not_behind="(?:jede[nrms]?|nächste[nrms]?|kommende[nrms]?|pro|bis)(?: (?:am|im|in))?",
    not_before=r"-\w|[\s-]+(?:schaltfläche|knopf|spalte|funktion|feld|filter|ansicht|klasse|button|methode|test)\b",
    generic="""
        ab alle alles als am an anderes arbeit arbeiten auf aus bei besprochen beschlossen bin bisher bitte da damals dann das
        dass den denn der des die dieses dir du ein eine einen entscheidungen entschieden er erledigt erreicht es etwas
        fertig fiel für gab gearbeitet gebaut geändert gefixt gelernt gemacht genau geschafft geschah geschehen
        geschrieben gesprochen getan gewesen gib gibt haben hab habe habt hast hat hatte hatten ich ihr im in ist ja kannst
        mach machen macht mal man mein mir mit nach nicht noch nur ob oder passiert passierte projekt projekte schon sein
        seit sich sie sind so sitzung sitzungen stand tat taten tun thema themen über überblick um und uns unser unsere
        unserem verlauf vom von vor waren war was welche welchem welchen welcher welches wer wie wir wird wo woran worüber
        worum wurde wurden zeig zeige zu zuletzt zum zur zusammen zusammenfassung dran los
    """,
)

_FRENCH = Language(
    days={
        "avant-hier": 2, "hier (?:soir|matin|après-midi)": 1, "ce (?:matin|soir)": 0, "cet après-midi": 0, "cette nuit": 0,
    },
    present="aujourd['’]hui",
    past=r"\b(?:avons|avez|ont|était|étaient|avait|avaient|fut|fait|faite?s?|le|la|les|une?|a-t-on|ai|qu['’]\w+)\b",
    units={"heures?": "hour", "jours?": "day", "semaines?": "week", "mois": "month", "(?:ans?|ann[ée]es?)": "year"},
    numbers={
        **_counts("une? deux trois quatre cinq six sept huit neuf dix onze douze"),
        "quelques": (2, 7), "plusieurs": (2, 7),
    },
    weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche".split(),
    months=["janvier", "f[ée]vrier", "mars", "avril", "mai", "juin", "juillet", "ao[ûu]t", "septembre", "octobre",
            "novembre", "d[ée]cembre"],
    short_months="janv f[ée]vr mars avr mai juin juil ao[ûu]t sept oct nov d[ée]c".split(),
    weekend="week-?end",
    seasons=["printemps", "été", "automne", "hiver"],
    phrases=[
        ("season", r"(?:au |en |l['’])?{S}(?: de)? {Y}"),
        ("season", r"(?:au |en |l['’]|le )?{S} (?:dernier|passé)"),
        ("days", "{T}"),
        ("last", r"(?:au cours de |pendant |durant |de )?(?:la )?(?P<unit>semaine) (?:derni[èe]re|pass[ée]e|pr[ée]c[ée]dente)"),
        ("last", r"(?:au cours du |pendant |du )?(?:le )?(?P<unit>mois) (?:dernier|pass[ée]|pr[ée]c[ée]dent)"),
        ("last", r"(?:pendant )?(?:l['’](?P<unit>an|ann[ée]e)) (?:derni[èe]re?|pass[ée]e?|pr[ée]c[ée]dente?)"),
        ("this", r"(?:cette|ce) (?P<unit>semaine|mois|ann[ée]e)(?:-ci)?"),
        ("rolling", r"(?:au cours des |pendant |durant |dans )?(?:les|ces|des) {N} derni(?:ers|[èe]res) {U}"),
        ("rolling", r"(?:au cours des |pendant |durant |dans )?(?:les|ces|des) derni(?:ers|[èe]res) {N} {U}"),
        ("ago", r"il y a (?:environ )?{N} {U}"),
        ("weekday_last_week", r"{W} de la semaine (?:derni[èe]re|pass[ée]e)"),
        ("weekday_this_week", r"{W} de cette semaine"),
        ("weekday", r"(?:de |ce )?{W} (?:dernier|pass[ée])"),
        ("weekend", r"(?:le )?{E} (?:dernier|pass[ée])"),
        ("this_weekend", r"(?:ce|le) {E}"),
        ("month", r"(?:en |au mois de? ?['’]?)?{M} (?:dernier|pass[ée])"),
        ("month", r"(?:en |au mois de? ?['’]?)?{M} {Y}"),
        ("date", r"(?:le |du )?(?:(?:lun|mar|mercre|jeu|vendre|same)di |dimanche )?{D}(?:er)? {m}(?: {Y})?"),
        ("date", r"(?:le|du) {D}/{O}(?:/{Y})?"),
    ],
    bare=[("season", "{S}"), ("days", "(?:d['’])?(?P<days>hier)"), ("weekday", "{W}"), ("month", "{M}"), ("iso", r"{Y}-{O}-{D}"),
          ("year", r"{Y}(?=\s*(?:$|[?!,;]))")],
    at={"month": "en|au mois de|au mois d['’]", "iso": "le|du", "year": "en", "weekday": "de|ce"},
    since="depuis(?: le| la)?|à partir (?:de |du )",
    until="jusqu['’](?:au|à|en)",
    before="avant",
    after="apr[èe]s",
    join="à|au|et|jusqu['’]au?|-|–",
    between="entre|de|du|d['’]",
    not_behind="(?:chaque|tous les|prochaine?|par|le)",
    not_before=r"\s+prochaine?|[\s-]+(?:bouton|colonne|fonction|champ|filtre|vue|classe|méthode)\b",
    generic="""
        a activité activités ai ainsi appris as au aux avec avez avions avons bilan c ça ce ces cette changé comme
        d dans de décidé décision décisions des discuté discussions dis donc donne du e écrit elle en ensemble est et été
        était étaient eu fais faisait fait faite faites faits fini il ils j je jour l la là le les leur liste m ma me mes moi
        mon montre n notre nos nous on ont ou où par parlé pas passé peux pour projet progrès qu quand que quel quelle quelles
        quels quelque quoi raconte récapitule résumé résume réalisé s sa se ses session sessions si sommes son sont sujet
        sujets sur t te terminé thème thèmes toi ton tout toute travail travaillé travaux tu un une vous y chose choses
    """,
    bare_days={"hier": 1},
)

_SPANISH = Language(
    days={
        "(?:anteayer|antier|antes de ayer)": 2, "ayer(?: por la (?:mañana|tarde|noche))?": 1, "anoche": 1,
        "esta (?:mañana|tarde|noche)": 0,
    },
    present="hoy",
    past=r"\b(?:hemos|han|ha|he|has|hicimos|hice|hizo|hicieron|fue|era|estaba|\w{3,}[aei]mos|\w{3,}(?:aron|ieron))\b",
    units={"horas?": "hour", "d[ií]as?": "day", "semanas?": "week", "mes(?:es)?": "month", "años?": "year"},
    numbers={
        **_counts("una? dos tres cuatro cinco seis siete ocho nueve diez once doce"),
        "un par de": (2, 3), "algun[oa]s": (2, 7), "unos pocos": (2, 7), "unos": (2, 7), "unas": (2, 7), "vari[oa]s": (2, 7),
    },
    weekdays="lunes martes mi[ée]rcoles jueves viernes s[áa]bado domingo".split(),
    months="enero febrero marzo abril mayo junio julio agosto sep?tiembre octubre noviembre diciembre".split(),
    short_months="ene feb mar abr may jun jul ago sept? oct nov dic".split(),
    weekend="fin de semana",
    seasons=["primavera", "verano", "otoño", "invierno"],
    phrases=[
        ("season", r"(?:en )?(?:la |el )?{S}(?: de(?:l)?)? {Y}"),
        ("season", r"(?:en )?(?:la |el )?{S} (?:pasad[oa]|últim[oa])"),
        ("days", "{T}"),
        ("last", r"(?:en |durante |de )?(?:la |el )?(?P<unit>semana|mes|año) (?:pasad[oa]|anterior)"),
        ("last", r"(?:en |durante |de )?(?:la |el )?pasad[oa] (?P<unit>semana|mes|año)"),
        ("rolling", r"(?:en |durante )?(?:la |el )últim[oa] (?P<unit>semana|mes|año)"),
        ("this", r"(?:en )?est[ea] (?P<unit>semana|mes|año)"),
        ("rolling", r"(?:en |durante )?(?:los |las |estos |estas )?[úu]ltim[oa]s {N} {U}"),
        ("ago", r"(?:desde )?hace (?:unos )?{N} {U}"),
        ("weekday_last_week", r"(?:el )?{W} de la semana pasada"),
        ("weekday_this_week", r"(?:el )?{W} de esta semana"),
        ("weekday", r"(?:el |del )?{W} pasado"),
        ("weekday", r"(?:el |del |este )(?:pasado )?{W}"),
        ("weekend", r"(?:el )?{E} pasado"),
        ("weekend", r"(?:el )?pasado {E}"),
        ("this_weekend", r"(?:este|el) {E}"),
        ("month", r"(?:en |de )?{M} (?:pasado|del? {Y})"),
        ("month", r"(?:en )?{M} {Y}"),
        ("date", r"(?:el |del )?{D} de {m}(?: del? {Y})?"),
        ("date", r"(?:el|del) {D}/{O}(?:/{Y})?"),
    ],
    bare=[("season", "{S}"), ("weekday", "{W}"), ("month", "{M}"), ("iso", r"{Y}-{O}-{D}"), ("year", r"{Y}(?=\s*(?:$|[?!,;]))")],
    at={"month": "en|durante", "iso": "el|del", "year": "en", "weekday": "este"},
    since="desde(?: el| la)?|a partir (?:de |del )",
    until="hasta(?: el| la)?",
    before="antes (?:de |del )",
    after="despu[ée]s (?:de |del )",
    join="a|al|y|hasta(?: el)?|-|–",
    between="entre(?: el)?|de|del",
    not_behind="(?:cada|todos los|próxim[oa]|por)",
    not_before=r"\s+que viene|\s+próxim[oa]|[\s-]+(?:botón|columna|función|campo|filtro|vista|clase|método)\b",
    generic="""
        a actividad actividades al algo aprendido aprendimos avances cambió cambiamos como con cosas cuál cuáles cual
        cuales cuando d da dame de decidido decidimos decisión decisiones del dime e el ella en entre era eran es escribimos
        esta estado estaba estamos este estuvimos estuvo fue fueron ha habíamos habido hablado hablamos hace hacer haciendo
        han has he hecho hemos hice hicimos hiciste hizo historial hubo juntos la las le lista lo los logrado logramos me mi
        mis muestra muéstrame más nos nosotros nuestra nuestro o para pasó pasado por progreso proyecto que qué quién
        resume resumen se sesión sesiones si sido sobre su sus tema temas terminado terminamos trabajado trabajamos trabajo
        tu tú un una unos usted y ya yo
    """,
)

_CHINESE_NUMBERS: dict[str, Count] = {
    "[一]": (1, 1), "[二两兩]": (2, 2), "三": (3, 3), "四": (4, 4), "五": (5, 5), "六": (6, 6), "七": (7, 7), "八": (8, 8),
    "九": (9, 9), "十一": (11, 11), "十二": (12, 12), "十五": (15, 15), "二十": (20, 20), "三十": (30, 30), "十": (10, 10),
    "[几幾数數]": (2, 7),
}  # fmt: skip

_CHINESE = Language(
    days={"大前天": 3, "前天(?:晚上|早上|上午|下午)?": 2, "昨(?:天|日|晚)(?:晚上|早上|上午|下午)?": 1,
          "今(?:早|晨|晚)": 0, "今天(?:早上|上午|下午|晚上)": 0},
    present="今[天日](?!头条|的?日期)",
    past="[了过過]|做|完成|干|我们|我們",
    units={"(?:个|個)?(?:小时|小時)": "hour", "[天日]": "day", "(?:周|週|(?:个|個)?(?:星期|礼拜|禮拜))": "week",
           "(?:个|個)?月": "month", "年": "year"},
    numbers=_CHINESE_NUMBERS,
    weekdays=[f"(?:周|週|星期|礼拜|禮拜){day}(?![次个個般切致样樣种種起志期历程报間间])" for day in (*"一二三四五六", "[日天]")],
    months=[], short_months=[],
    weekend="(?:周|週)末",
    seasons=["春[天季]", "夏[天季]", "秋[天季]", "冬[天季]"],
    phrases=[
        ("season", "在?{Y} ?年?的?{S}"),
        ("before_last", "在?上上(?:个|個)?(?P<unit>周|週|星期|礼拜|禮拜|月)(?![一二三四五六日天末])"),
        ("days", "在?{T}"),
        ("weekday_last_week", "在?上(?:个|個)?{W}"),
        ("weekday_this_week", "在?[这這本](?:个|個)?{W}"),
        ("last", "在?上(?:个|個)?(?P<unit>周|週|星期|礼拜|禮拜|月)(?![一二三四五六日天末])"),
        ("this", "在?[这這本](?:个|個)?(?P<unit>周|週|星期|礼拜|禮拜|月)(?![一二三四五六日天末])"),
        ("last", "在?去(?P<unit>年)"),
        ("this", "在?今(?P<unit>年)"),
        ("before_last", "在?前(?P<unit>年)"),
        ("ago", "在?{N} ?{U}(?:以前|之前|前)"),
        ("rolling", "在?(?:最近|过去|過去|近|这|這)的? ?{N} ?{U}(?:内|內|里|裡)?"),
        ("weekend", "在?上(?:个|個)?{E}"),
        ("this_weekend", "在?(?:这|這|本)?(?:个|個)?{E}"),
        ("date", "在?{Y} ?年 ?{O} ?月 ?{D} ?[日号號]"),
        ("date", "在?{O} ?月 ?{D} ?[日号號]"),
        ("month", "在?{Y} ?年 ?{O} ?月份?"),
    ],
    bare=[("season", "{S}"), ("weekday", "在?{W}"), ("month", "在?{O} ?月份?(?![\\d一-十])"), ("iso", r"在?{Y}-{O}-{D}"), ("year", "在?{Y} ?年")],
    at={"weekday": "", "month": "(?<![\\d个個])", "iso": "在|从|從|自|于", "year": "(?<![\\d])"},
    since="从|從|自从|自從|自",
    until="直到|到|截至",
    before="(?!)",
    after="(?!)",
    join="到|至|和|-|~|～",
    between="从|從|自|在",
    not_behind="(?:每|每个|每個|下|下个|下個|逢|[\\d一二三四五六七八九十两]+个?|返回|显示|顯示|格式化)",
    not_before="的?(?:日期|按钮|按鈕|字段|函数|函數|列|选项|標籤|标签|筛选)",
    generic="""
        我们 我們 咱们 我 你 做 了 什么 什麼 啥 干 過 过 的 工作 是 有 哪些 哪 在 吗 嗎 呢 都 完成 进展 進展 情况 情況 内容 內容
        讨论 討論 聊 一下 总结 總結 概述 概览 回顾 回顧 发生 發生 事情 事 些 请 請 告诉 告訴 给 給 列出 会话 會話 主题 主題 话题 話題 项目
        項目 改 修改 决定 決定 和 到 把 得 最近 一起 处理 處理 呀 啊 吧 怎么样 如何 进行 進行 解决 解決
    """,
    since_behind="以来|以來|起|开始|開始|至今|到现在|到現在|之后|以后|以後|之後",
    until_behind="为止|為止",
    before_behind="[之以]前",
    is_spaced=False,
)  # fmt: skip

_JAPANESE = Language(
    days={"(?:一昨日|おととい)": 2, "(?:昨日|きのう)": 1, "(?:昨夜|昨晩)": 1, "今(?:朝|晩|夜)": 0, "本日": 0},
    present="今日(?!日付|の日付|は何日)",
    past="た|まし|やっ",
    units={"時間": "hour", "日間?": "day", "週間?": "week", "(?:[ヶケかカヵ箇]?月間?)": "month", "年間?": "year"},
    numbers={**_CHINESE_NUMBERS, "数": (2, 7)},
    weekdays=[f"{day}曜日?" for day in "月火水木金土日"],
    months=[], short_months=[],
    weekend="週末",
    seasons=["春", "夏", "秋", "冬"],
    phrases=[
        ("season", "{Y} ?年の?{S}"),
        ("before_last", "先々(?P<unit>週|月)(?!末)"),
        ("before_last", "一昨(?P<unit>年)"),
        ("days", "{T}"),
        ("weekday_last_week", "先週の? ?{W}"),
        ("weekday_this_week", "今週の? ?{W}"),
        ("last", "先(?P<unit>週|月)(?!末)"),
        ("last", "(?:去|昨)(?P<unit>年)"),
        ("this", "今(?P<unit>週|月|年)(?!末)"),
        ("ago", "{N} ?{U}(?:前|まえ)"),
        ("rolling", "(?:過去|直近|最近|ここ|この)の? ?{N} ?{U}"),
        ("weekend", "先{E}"),
        ("this_weekend", "(?:この|今)?{E}"),
        ("weekday", "(?:この前|前|先日)の{W}"),
        ("date", "{Y} ?年 ?{O} ?月 ?{D} ?日"),
        ("date", "{O} ?月 ?{D} ?日"),
        ("month", "{Y} ?年 ?{O} ?月"),
    ],
    bare=[("season", "{S}"), ("weekday", "{W}(?![休当])"), ("month", "(?<![\\dヶケかカ]){O} ?月(?=[にのはから以]|$)"), ("iso", r"{Y}-{O}-{D}"),
          ("year", "{Y} ?年")],
    at={"weekday": "", "month": "", "iso": "", "year": "(?<![\\d])"},
    since="(?!)", until="(?!)", before="(?!)", after="(?!)",
    join="から|と|〜|～|-",
    between="(?!)",
    not_behind="(?:毎|毎週|来|来週の?|翌|次の)",
    not_before="の?(?:日付|ボタン|列|関数|フィールド|ラベル|フィルタ)",
    generic="""
        何 なに を し た した しました やった やりました 作業 仕事 の は が に で と も から 私たち 私 我々 僕 ついて こと 教えて ください まし
        進捗 内容 行った 行いました 話した 話し 話題 まとめ まとめて 要約 概要 どんな どの どう です か だった でした 起きた ました て いた いる
        トピック テーマ セッション プロジェクト 決めた 決定 最近 一覧 たち さん 取り組んだ 取り組んで きた 変更 完了 へ や ね よ
    """,
    since_behind="から|以来|以降",
    until_behind="まで|以前",
    before_behind="より前|の前",
    is_spaced=False,
)  # fmt: skip

LANGUAGES = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _CHINESE, _JAPANESE)
