"""Model cards and reports: views of the evidence and its verdict; a view computes nothing anew and adds no number of its own."""

from mlflow_privacy_gate.cards.card import read_claims, write_card
from mlflow_privacy_gate.cards.description import description
from mlflow_privacy_gate.cards.particulars import Particulars
from mlflow_privacy_gate.cards.report import html_report, markdown_report
from mlflow_privacy_gate.cards.view import CardView, card_view

__all__ = [
    "CardView",
    "Particulars",
    "card_view",
    "description",
    "html_report",
    "markdown_report",
    "read_claims",
    "write_card",
]
