"""What is promised, in words for somebody who has never heard of epsilon: one card for each promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from goodfence.privacy.guarantee import Guarantee

_TITLES = {
    "proved": "Promised, and proved",
    "claimed": "Promised by a paper; not proved here",
    "refuted": "Promised by a paper; it does not hold",
    "none": "Nothing is promised",
}
_OPEN = (
    "Whoever opens accounts may read whatever the answers give away. The figures above say how much one kind of "
    "attacker read; nothing says that another cannot read more."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A promise, and who makes it."""

    status: str
    title: str
    names: str
    words: str
    reason: str
    terms: str
    """The promise as specialists state it; empty where there is none."""


def cards_of(names: Sequence[str], promises: Sequence[Guarantee]) -> list[Card]:
    """Return one card for each promise, with the names of those who make it, proved ones first."""
    makers: dict[Guarantee, list[str]] = {}
    for name, promise in zip(names, promises, strict=True):
        makers.setdefault(promise, []).append(name)
    order = list(_TITLES)
    return sorted(
        (_card(promise, " · ".join(made_by)) for promise, made_by in makers.items()),
        key=lambda card: order.index(card.status),
    )


def _card(promise: Guarantee, names: str) -> Card:
    terms = ""
    if promise.status != "none":
        terms = (
            f"epsilon = {promise.epsilon:.3g}, delta = {promise.delta:g}, for one {promise.unit} "
            f"({promise.adjacency})"
        )
    return Card(
        status=promise.status,
        title=_TITLES[promise.status],
        names=names,
        words=_OPEN if promise.status == "none" else in_words(promise),
        reason=promise.reason,
        terms=terms,
    )


def briefly(promise: Guarantee) -> str:
    """Return in a few words what there is of a promise.

    Examples
    --------
    >>> briefly(Guarantee(status="none", reason="So."))
    'none'
    """
    about = "one rating of a person" if promise.unit == "rating" else "everything a person rated"
    return {
        "none": "none",
        "refuted": f"a paper makes one about {about}; it does not hold",
        "claimed": f"a paper makes one about {about}; it is not proved here",
        "proved": f"proved, about {about}",
    }[promise.status]


def in_words(promise: Guarantee) -> str:
    """Return a promise without its Greek letters.

    Examples
    --------
    >>> stated = Guarantee(status="proved", unit="user", adjacency="add/remove", epsilon=1, delta=0, reason="So.")
    >>> in_words(stated).split(". ")[1]
    'Somebody for whom it was even odds that she is in the data can be at most 73% sure afterwards.'
    """
    one = "one rating of a person" if promise.unit == "rating" else "everything a person rated"
    doubt = "she gave that rating" if promise.unit == "rating" else "she is in the data"
    sure = 1.0 / (1.0 + math.exp(-(promise.epsilon or 0.0)))
    delta = promise.delta or 0.0
    but = f", but for a chance of 1 in {1 / delta:,.0f}" if delta > 0 else ""
    stated = (
        f"However many accounts are opened and whatever they ask, what they are told is nearly as likely with {one} "
        f"in the data as without. Somebody for whom it was even odds that {doubt} can be at most {sure:.0%} sure "
        f"afterwards{but}."
    )
    if promise.status == "proved":
        return stated
    if promise.status == "claimed":
        return f"The paper says: {stated[0].lower()}{stated[1:]} Nobody checked that here."
    return f"The paper says: {stated[0].lower()}{stated[1:]} That is not so."
