"""Cuts a text into sentences."""

import re

ABBREVIATIONS = ("Mr", "Mrs", "Ms", "Dr", "St", "Prof", "No", "vs", "etc", "e.g", "i.e")


def split(text):
    """Sentences of a text, in order. A blank line always ends one."""
    sentences = []
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph = " ".join(paragraph.split())
        start = 0
        for end in re.finditer(r"[.!?][\"')\]”’]*\s+(?=[\"'(\[“‘]*[A-Z0-9])", paragraph):
            before = paragraph[start : end.start()]
            if before.endswith(ABBREVIATIONS) or re.search(r"\b[A-Z]$", before):
                continue  # a title or an initial, not the end
            sentences.append(paragraph[start : end.end()].strip())
            start = end.end()
        sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if re.search(r"\w", sentence)]
