"""Small training programs in PyTorch's API, run with lamella and with PyTorch: equal losses for
equal seeds, including dropout's random numbers."""

import random

import pytest

import lamella

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore:enable_nested_tensor"),
    pytest.mark.filterwarnings("ignore:Lazy modules"),
    pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated"),
]


def translation(fw):
    """A recurrent encoder of packed sequences, a cell that decodes, and attention between."""
    nn, F = fw.nn, fw.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(20, 8, padding_idx=0)
            self.encoder = nn.GRU(8, 16, batch_first=True, bidirectional=True)
            self.cell = nn.LSTMCell(8, 32)
            self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
            self.out = nn.Linear(32, 20)
            self.drop = nn.Dropout(0.1)
            for name, parameter in self.named_parameters():
                if "weight" in name and parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)

        def forward(self, source, lengths, target):
            packed = nn.utils.rnn.pack_padded_sequence(
                self.drop(self.table(source)), lengths, batch_first=True, enforce_sorted=False
            )
            steps, last = self.encoder(packed)
            steps, _ = nn.utils.rnn.pad_packed_sequence(steps, batch_first=True)
            hidden = fw.cat([last[0], last[1]], -1)
            cell = fw.zeros_like(hidden)
            mask = fw.arange(steps.size(1))[None, :] >= lengths[:, None]
            scores = []
            for t in range(target.size(1)):
                hidden, cell = self.cell(self.table(target[:, t]), (hidden, cell))
                seen, _ = self.attention(hidden[:, None], steps, steps, key_padding_mask=mask)
                scores.append(self.out(seen[:, 0] + hidden))
            return fw.stack(scores, 1)

    net = Net()
    optimizer = fw.optim.Adam(net.parameters(), lr=1e-2)
    schedule = fw.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    draw = random.Random(0)
    losses = []
    for _ in range(8):
        lengths = fw.tensor([draw.randint(2, 6) for _ in range(4)])
        longest = int(lengths.max())
        source, target = (
            fw.tensor([[draw.randint(1, 19) for _ in range(n)] for _ in range(4)])
            for n in (longest, 5)
        )
        scores = net(source, lengths, target).transpose(1, 2)
        loss = F.cross_entropy(scores, target, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def adversaries(fw):
    """A network that draws images, and one with spectral norm that tells them from others."""
    nn, F = fw.nn, fw.nn.functional
    maker = nn.Sequential(
        nn.ConvTranspose2d(8, 8, 4, 1, 0, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1),
        nn.Tanh(),
    )
    judge = nn.Sequential(
        nn.utils.spectral_norm(nn.Conv2d(1, 8, 4, 2, 1)),
        nn.LeakyReLU(0.2, inplace=True),
        nn.InstanceNorm2d(8, affine=True),
        nn.Flatten(),
        nn.LazyLinear(1),
    )
    judge(fw.zeros(1, 1, 8, 8))
    for layer in maker:
        if isinstance(layer, nn.modules.conv._ConvTransposeNd):
            nn.init.normal_(layer.weight, 0, 0.02)
    making = fw.optim.Adam(maker.parameters(), 2e-4, (0.5, 0.999))
    judging = fw.optim.SGD(judge.parameters(), 0.02, momentum=0.9)
    losses = []
    for _ in range(4):
        real, made = fw.rand(4, 1, 8, 8), maker(fw.randn(4, 8, 1, 1))
        yes, no = fw.ones(4, 1), fw.zeros(4, 1)
        loss = F.binary_cross_entropy_with_logits(judge(real), yes)
        loss = loss + F.binary_cross_entropy_with_logits(judge(made.detach()), no)
        judging.zero_grad()
        loss.backward()
        judging.step()
        losses.append(loss.item())
        loss = nn.BCEWithLogitsLoss()(judge(made), yes)
        making.zero_grad()
        loss.backward()
        making.step()
        losses.append(loss.item())
    return losses


def language_model(fw):
    """A Transformer that reads to the left, with one table for words and scores."""
    nn, F = fw.nn, fw.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(30, 16)
            self.places = nn.Parameter(fw.zeros(1, 12, 16))
            layer = nn.TransformerEncoderLayer(
                16, 4, 32, activation="gelu", batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, 2)
            self.norm = nn.LayerNorm(16)
            self.out = nn.Linear(16, 30, bias=False)
            self.out.weight = self.table.weight
            mask = nn.Transformer.generate_square_subsequent_mask(12)
            self.register_buffer("mask", mask, persistent=False)

        def forward(self, words):
            x = self.layers(self.table(words) + self.places, mask=self.mask, is_causal=True)
            return self.out(self.norm(x))

    net = Net()
    optimizer = fw.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)
    draw = random.Random(1)
    losses = []
    for _ in range(6):
        words = fw.tensor([[draw.randint(0, 29) for _ in range(13)] for _ in range(3)])
        scores = net(words[:, :-1])
        loss = F.cross_entropy(scores.reshape(-1, 30), words[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with fw.no_grad():
        losses.append(net(words[:, :-1]).mean().item())
    return losses


@pytest.mark.parametrize("program", [translation, adversaries, language_model])
def test_programs(program):
    torch.manual_seed(0)
    wanted = program(torch)
    lamella.manual_seed(0)
    assert program(lamella) == pytest.approx(wanted, rel=1e-4, abs=1e-5)
