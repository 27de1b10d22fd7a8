"""How people ask about work as such: what was done, and what is left open. Only data."""

from __future__ import annotations

import re

RECENT = re.compile(
    r"^(?:(?:so|and|please|tell me|remind me|show me|list|give me|an?|the)\W+)*(?:"
    r"(?:what|which)\b.*\b(?:topics|subjects|themes)\b|"
    r"what (?:have|had|did|were|are) (?:we|i|you)\b|what(?:['’]ve| have) (?:we|i|you)\b|"
    r"(?:overview|summary|recap|list) of\b.*\b(?:topics|sessions|work|progress)|(?:recent|last|latest) sessions\b|"
    r"(?:was|woran|worüber) (?:haben|hatten|habe) (?:wir|ich)\b|(?:welche|an welchen) (?:themen|sitzungen)\b|"
    r"(?:qu['’]|sur quoi |de quoi )(?:avons-nous|a-t-on|ai-je|est-ce qu['’]on a|est-ce que (?:nous avons|j['’]ai))|"
    r"(?:sur )?quels? (?:sujets|thèmes)\b|¿?(?:en |de )?qué (?:hicimos|hice|hemos|he|temas|trabajamos)\b|"
    r"(?:我们|我們|咱们|我)?(?:最近)?(?:都)?(?:做|讨论|討論|聊|处理|完成)[过過了]*(?:什么|什麼|哪些|啥)|(?:有)?哪些(?:主题|主題|话题|話題)|"
    r"(?:最近)?(?:は)?(?:何を(?:し|やっ|作業)|どんな(?:トピック|テーマ|作業|話題|こと))"
    r")",
    re.IGNORECASE,
)
"""Questions about work as such, if they have no other words: "what topics have we worked on"."""

TOPICS = re.compile(
    r"^(?:(?:so|and|please|tell me|remind me|show me|list|give me|an?|the|on|about)\W+)*(?:"
    r"(?:what|which)\b.*\b(?:topics?|subjects?|themes?)\b|what\b.*\b(?:we|i|you)\b.*\bworking\b|"
    r"(?:overview|summary|recap|list) of\b.*\btopics\b|"
    r"(?:an |über )?welche[nr]? themen\b|(?:sur )?quels? (?:sujets|thèmes)\b|¿?(?:en |de |sobre )?qué temas\b|"
    r".*(?:哪些|什么|什麼)(?:主题|主題|话题|話題)|.*(?:どんな|何の)(?:トピック|テーマ|話題)"
    r")",
    re.IGNORECASE,
)
"""Questions about what the work was on, if they have no other words: "what topics did we work on"."""

LAST_TIME = re.compile(
    r"\bwhen (?:did|have|had|was|were) (?:we|i|you|claude|it|this|that|the \w+) last\b|\bwhen was the last time\b|\bthe last time (?:we|i|you)\b|"
    r"\bwann (?:haben|habe|hat|hatten|wurde|war)\b.*\b(?:zuletzt|das letzte mal|zum letzten mal)\b|"
    r"\bquand\b.*\b(?:pour )?la dernière fois\b|\bcuándo\b.*\b(?:por )?última vez\b|(?:上次|上一次|最后一次|最後一次|最近一次).*(?:什么时候|什麼時候|何时|何時)|"
    r"(?:什么时候|什麼時候|何时|何時).*(?:上次|上一次|最后一次|最後一次|最近一次)|最後に.*(?:いつ|何時)|前回.*いつ",
    re.IGNORECASE,
)
"""Questions about the last time: the newest answer is wanted, not the best one."""

LAST_TIME_WORDS = frozenset(
    "when last latest ran run use used see saw seen wann zuletzt letzte letzten angefasst geändert benutzt quand dernière fois "
    "touché changé utilisé cuándo última vez tocamos cambiamos usamos".split()
)
"""Words of such questions that name no subject. Those of questions about work name none either."""

OPEN = (
    re.compile(
        r"^(?:(?:so|and|ok|please|tell|show|list|give|me|us|what|whats|which|anything|any|is|are|was|were|there|the|all|our|my|"
        r"do|does|did|we|i|have|has|had|things?|else|s|re|still|of|work)[\s'’,]+)*"
        r"(?:left open|still open|is open|are open|open (?:questions?|points?|items?|ends?|threads?|tasks?|to-?dos?|topics?)|"
        r"loose ends?|unfinished(?: (?:work|business|things))?|unresolved(?: questions?)?|outstanding|pending|"
        r"left(?: over)?(?: to (?:do|be done))?|to-?dos? left|(?:remains?|remaining)(?: (?:open|to (?:do|be done)))?)"
        r"(?P<about>(?:\W.*)?)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?:was (?:ist|sind|war|bleibt|blieb) (?:denn )?(?:noch )?(?:offen(?: geblieben)?|unerledigt|zu tun)|was steht noch aus|"
        r"was fehlt noch|(?:welche |gibt es |was sind )?(?:noch |die )?offene[nr]? (?:fragen|punkte|aufgaben|themen)(?: (?:sind|gibt es))?(?: noch)?)"
        r"(?P<about>(?:\W.*)?)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?:(?:qu['’]est-ce qui|que|quoi|il) reste(?:-t-il)?(?: (?:ouvert|à faire|en suspens|à finir))?|"
        r"(?:quel(?:le)?s? (?:sont )?)?(?:les )?(?:questions|points|sujets|tâches) (?:sont )?(?:encore )?(?:ouvert(?:e)?s|en suspens))"
        r"(?P<about>(?:\W.*)?)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^¿?(?:qué (?:queda|falta|quedó|está)(?: (?:aún|todavía))?(?: (?:abierto|pendiente|por hacer))?|(?:cuáles son )?(?:qué )?(?:las |los )?"
        r"(?:preguntas|cuestiones|tareas|temas|puntos) (?:están |quedan )?(?:pendientes|abiert[oa]s))"
        r"(?P<about>(?:\W.*)?)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?P<about>.*?)(?:还有|還有|有|还剩|還剩)?(?:什么|什麼|哪些)?(?:问题|問題|事情|工作|任务|任務)?(?:还|還)?(?:没有?|沒有?|未)"
        r"(?:完成|做完|解决|解決|做)(?:的(?:问题|問題|事情|工作|任务|任務))?$|^(?P<about2>.*?)的?(?:待办(?:事项)?|待辦(?:事項)?|遗留问题|遺留問題)$"
    ),
    re.compile(
        r"^(?P<about>.*?)[でにのは]?(?:まだ)?(?:(?:何が)?(?:残って|終わって(?:い)?ない|未解決|未完了)(?:い?る|います)?|残(?:件|課題|タスク|作業))"
        r"(?:の?(?:こと|作業|課題|問題|タスク|もの))?(?:は?(?:何|なに)?(?:です)?か?)?$"
    ),
)
"""Questions about what is left open, by language. `about` is what they are about, or ""."""

OPEN_UNSPACED = OPEN[-2:]
"""Those of the languages that put the subject first, without a preposition."""

ABOUT = re.compile(
    r"^\W*(?:on|about|for|with|in|of|from|regarding|von|vom|zu|zum|zur|bei|beim|am|an|im|in|über|für|sur|pour|dans|avec|du|de|"
    r"sobre|en|con|para|del)\W+(?P<words>.+)$",
    re.IGNORECASE,
)
