"""From a workflow to the text of its file."""

import re
from typing import Any

import yaml
from yaml.emitter import ScalarAnalysis

from logyard_domain.definition import Workflow
from logyard_workflows_dsl.language import language


def dump(workflow: Workflow) -> str:
    """The workflow as YAML of version v4: block style, scripts and files as literal blocks.

    Reading it back gives an equal workflow.
    """
    plain: Any = language("v4").write(workflow)
    text: str = yaml.dump(  # pyright: ignore[reportUnknownMemberType]
        {"version": workflow.version, **plain},
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=_NEVER_FOLDED,
    )
    return text


_NEVER_FOLDED = 1 << 30


_LITERAL = re.compile(
    "[!-~\xa1-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
    "[\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*"
)
"""Text that a literal block can hold, trailing blanks and tabs included."""

_LINE_BREAKS = re.compile("[\x85\u2028\u2029]")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        analysis = super().analyze_scalar(scalar)
        if "\n" in scalar and _LITERAL.fullmatch(scalar):
            analysis.allow_block = True
        return analysis


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _LINE_BREAKS.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar(  # pyright: ignore[reportUnknownMemberType]
        "tag:yaml.org,2002:str", text, style=style
    )


_Dumper.add_representer(str, _text)
