"""Templates are found in one place: the user's folder first, then the package's own, then the source tree's ``templates``.

In ``*.html.j2`` every value is escaped as HTML, in ``*.md.j2`` as Markdown, without a template asking for it. A name that a template uses
and a view lacks is an error, never an empty string. Templates run in Jinja's sandbox.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from mlflow_privacy_gate.cards import escaping
from mlflow_privacy_gate.errors import CardError
from mlflow_privacy_gate.vocabulary import RULE_CREDIT_HTML, RULE_MARGIN, RULE_URL

_PACKAGE = Path(__file__).resolve().parent.parent


def own_folder() -> Path:
    """Find the templates this package came with: inside it when installed from a wheel, beside it in a source tree."""
    for folder in (_PACKAGE / "_templates", _PACKAGE.parent / "templates"):
        if folder.is_dir():
            return folder
    raise CardError(f"the package's own templates are missing: looked in {_PACKAGE / '_templates'}")


def render(name: str, *, folder: Path | None = None, **values: object) -> str:
    """Render the template ``name`` with ``values``; a file of that name in ``folder`` (the policy's ``templates``) stands before ours.

    CardError names template and line where it is missing, broken, or asks for something that is not there.
    """
    if folder is not None and not folder.is_dir():
        raise CardError(f"{folder}: the policy's `templates` must name a folder")
    try:
        return _environment(folder, html=name.endswith(".html.j2")).get_template(name).render(**values)
    except jinja2.TemplateNotFound as exc:
        raise CardError(f"template {exc.name} was not found") from exc
    except jinja2.TemplateSyntaxError as exc:
        raise CardError(f"{exc.filename or exc.name}:{exc.lineno}: {exc.message}") from exc
    except (jinja2.TemplateError, AttributeError, TypeError, ValueError) as exc:
        raise CardError(f"template {name}: {exc}") from exc


def one_blank_line(text: str) -> str:
    """Give text with no more than one blank line in a row; what tags in a template leave behind reads as nothing."""
    return re.sub(r"\n{3,}", "\n\n", text)


@lru_cache(maxsize=8)
def _environment(folder: Path | None, *, html: bool) -> jinja2.Environment:
    folders = [own_folder()] if folder is None else [folder, own_folder()]
    environment = ImmutableSandboxedEnvironment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=html,
        finalize=None if html else escaping.markdown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["link"] = escaping.html_link if html else escaping.link
    if not html:
        environment.filters["run_link"] = escaping.run_link
    # CC BY 4.0: the rule's source stands, with its link, wherever its margin does. MLflow's Markdown preview shows HTML as text.
    credit = Markup(RULE_CREDIT_HTML)  # noqa: S704 - a constant of ours
    environment.globals["rule_credit"] = credit if html else escaping.link(credit.striptags(), RULE_URL)
    environment.globals["rule_margin"] = RULE_MARGIN
    return environment
