"""Searches a text by meaning: embeds its sentences and shows those nearest to a question."""

import argparse
import os
import pathlib
import sys
import textwrap
import time

import encoder
import operators
import sentences as text_sentences
from tqdm import tqdm

import lamella

HERE = pathlib.Path(__file__).resolve().parent
QUERIES = [
    "How can you tell that a storm is coming?",
    "Why does the ocean taste of salt?",
    "finding your position on a ship without satellites",
]
# A row of float32 results carries about seven digits; the same sentence must agree in five.
AGREEMENT = 0.99999


class Index:
    """The sentences of a text and their embeddings."""

    def __init__(self, sentences, tokens, model):
        self.sentences, self.tokens, self.model = sentences, tokens, model
        self.token_lists = tokens(sentences)
        rows = [None] * len(sentences)
        start = time.perf_counter()
        with tqdm(total=len(sentences), unit=" sentences", desc="Embedding") as progress:
            for batch in encoder.batches(self.token_lists):
                result = model([self.token_lists[i] for i in batch])
                for k, i in enumerate(batch):
                    rows[i] = result[k]
                progress.update(len(batch))
        self.seconds = time.perf_counter() - start
        self.matrix = lamella.stack(rows)  # [sentence, 384]

    def search(self, query, count):
        """The `count` best (similarity, sentence), best first."""
        # Rows have length 1, so a product with the query is the cosine of the angle.
        scores = lamella.mv(self.matrix, self.model(self.tokens([query]))[0]).tolist()
        best = sorted(range(len(scores)), key=lambda i: -scores[i])[:count]
        return [(scores[i], self.sentences[i]) for i in best]


def compare_compiled(index):
    """Embeds the sentences with a compiled encoder and reports the speed-up. False if the
    embeddings differ."""
    plain, index.model.hidden = index.model.hidden, lamella.compile(index.model.hidden)
    first = Index(index.sentences, index.tokens, index.model)
    second = Index(index.sentences, index.tokens, index.model)
    programs = len(index.model.hidden.programs())
    index.model.hidden = plain
    worst = min(encoder.cosine(a, b) for a, b in zip(second.matrix.tolist(), index.matrix.tolist()))
    print(
        f"Compiled: {second.seconds:.2f} s for what took {index.seconds:.2f} s, after "
        f"{first.seconds:.2f} s with the making of {programs} programs, one for each shape; "
        f"lowest cosine of the same sentence {worst:.7f}."
    )
    return worst >= AGREEMENT


def answer(index, query, count):
    start = time.perf_counter()
    found = index.search(query, count)
    milliseconds = (time.perf_counter() - start) * 1000
    print(f"\n{query}   ({milliseconds:.1f} ms)")
    for rank, (score, sentence) in enumerate(found, 1):
        lead = f"  {rank}. {score:.3f}  "
        print(textwrap.fill(sentence, 96, initial_indent=lead, subsequent_indent=" " * len(lead)))


def compare(index, folder):
    """Reports how well the embeddings agree with PyTorch's. False if they differ."""
    try:
        import reference
    except ImportError:
        print("PyTorch is not installed here, so the embeddings are not compared with its.")
        return True
    rows, seconds = reference.embed_all(folder, index.token_lists)
    own = index.matrix.tolist()
    worst = min(encoder.cosine(a, b) for a, b in zip(own, rows))
    print(
        f"Compared with PyTorch {reference.torch.__version__}: lowest cosine of the same sentence "
        f"{worst:.7f} (at least {AGREEMENT} expected); {index.seconds:.2f} s here, {seconds:.2f} s "
        "there."
    )
    return worst >= AGREEMENT


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--text",
        type=pathlib.Path,
        default=HERE / "sea.txt",
        metavar="FILE",
        help="the text to search, UTF-8 (default: an essay about the sea)",
    )
    parser.add_argument(
        "--query",
        default=os.environ.get("QUERY", ""),
        help="one question; without it a prompt, or three examples",
    )
    parser.add_argument(
        "--compile", action="store_true", help="compile the encoder too, and say what it gained"
    )
    parser.add_argument("--count", type=int, default=3, help="answers for each question")
    options = parser.parse_args()

    text = options.text.read_text(encoding="utf-8")
    sentences = text_sentences.split(text)
    if not sentences:
        parser.error(f"{options.text}: expected a text with sentences, found none")
    print(f"{options.text.name}: {len(sentences)} sentences")
    operators.load()
    folder = encoder.model_folder()
    index = Index(sentences, encoder.Tokens(folder), encoder.Encoder(folder))
    print(
        f"Embedded in {index.seconds:.2f} s, "
        f"{len(sentences) / index.seconds:.0f} sentences a second."
    )
    agrees = compare(index, folder)
    if options.compile:
        agrees = compare_compiled(index) and agrees

    if options.query.strip():
        answer(index, options.query.strip(), options.count)
    elif sys.stdin.isatty() and sys.stdout.isatty():
        print("\nAsk in your own words; an empty line ends.")
        while True:
            try:
                query = input("\n? ").strip()
            except (EOFError, KeyboardInterrupt):
                print()
                break
            if not query:
                break
            answer(index, query, options.count)
    else:
        for query in QUERIES:
            answer(index, query, options.count)
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
