"""Card numbers and IBANs, recognized by form and check digits."""

from __future__ import annotations

from collections.abc import Iterator
from re import Match

FINANCIAL = (
    r"(?<![\w.-])(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6(?:011|4[4-9]\d|5\d\d|2\d\d)|35\d{2})(?:[ -]?\d{4}){3}(?:[ -]?\d{1,3})?(?![\w-])"
    r"|(?<![\w.-])3[47]\d{2}[ -]?\d{6}[ -]?\d{5}(?![\w-])|(?<![\w.-])3[068]\d{2}[ -]?\d{6}[ -]?\d{4}(?![\w-])"
    r"|(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]){11,30}(?![A-Za-z0-9])"
)
"""A pattern for `redact`, which treats it specially: matches count only if their check digits are right."""


def numbers(match: Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans in `match` of card numbers and IBANs with correct check digits."""
    said, start = match.group(), match.start()
    if said[0].isdigit():
        digits = [int(digit) for digit in said if digit.isdigit()]
        odd = digits[-1::-2]
        even = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
        if len(set(digits)) > 1 and (sum(odd) + sum(even)) % 10 == 0:  # Luhn
            yield match.span()
        return
    for end in range(len(said), 14, -1):  # words in capitals can follow an IBAN
        iban = said[:end].replace(" ", "")
        if said[end - 1] == " " or len(iban) < 15 or said[end : end + 1].isalnum():
            continue
        if int("".join(str(int(one, 36)) for one in iban[4:] + iban[:4])) % 97 == 1:
            yield start, start + end
            return
