# packages: skorch==1.4.0, tabulate==0.10.0
"""A classifier with scikit-learn's interface."""

import torch
from sklearn.datasets import make_classification
from skorch import NeuralNetClassifier

X, y = make_classification(100, 8, random_state=0)
X = X.astype("float32")
y = y.astype("int64")
torch.manual_seed(0)


class N(torch.nn.Module):
    def __init__(s, h=10):
        super().__init__()
        s.n = torch.nn.Sequential(
            torch.nn.Linear(8, h), torch.nn.ReLU(), torch.nn.Linear(h, 2), torch.nn.Softmax(-1)
        )

    def forward(s, x):
        return s.n(x)


n = NeuralNetClassifier(N, max_epochs=4, lr=0.1, verbose=0, iterator_train__shuffle=True)
n.fit(X, y)
print(n.history[:, "train_loss"], n.score(X, y), n.predict_proba(X[:2]))
