# packages: torch-geometric==2.8.1, requests==2.34.2, urllib3==2.8.0, idna==3.20
# packages: certifi==2026.10.19.post1, charset-normalizer==3.5.3, xxhash==4.1.0, psutil==7.2.2
"""Graph networks trained, batches of graphs, utilities."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    ChebConv,
    EdgeConv,
    GATConv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    TransformerConv,
    global_mean_pool,
)
from torch_geometric.utils import (
    add_self_loops,
    coalesce,
    degree,
    scatter,
    softmax,
    to_dense_adj,
    to_undirected,
)

torch.manual_seed(0)
ei = torch.randint(0, 12, (2, 40))
x = torch.randn(12, 8)
y = torch.randint(0, 3, (12,))
for C in (
    lambda i, o: GCNConv(i, o),
    lambda i, o: GATConv(i, o, heads=2, concat=False),
    lambda i, o: SAGEConv(i, o),
    lambda i, o: GINConv(torch.nn.Linear(i, o)),
    lambda i, o: ChebConv(i, o, 2),
    lambda i, o: TransformerConv(i, o),
    lambda i, o: GraphConv(i, o),
    lambda i, o: EdgeConv(torch.nn.Linear(2 * i, o)),
):
    try:
        torch.manual_seed(1)
        a, b = C(8, 16), C(16, 3)
        opt = torch.optim.Adam([*a.parameters(), *b.parameters()], 1e-2)
        for _ in range(3):
            o = b(torch.relu(a(x, ei)), ei)
            l = torch.nn.functional.cross_entropy(o, y)
            opt.zero_grad()
            l.backward()
            opt.step()
        print(type(a).__name__, l.item())
    except Exception as e:
        print(type(a).__name__, "FAIL", type(e).__name__, str(e)[:200])
ds = [
    Data(x=torch.randn(4, 8), edge_index=torch.randint(0, 4, (2, 6)), y=torch.tensor([i % 2]))
    for i in range(6)
]
torch.manual_seed(2)
for b in DataLoader(ds, batch_size=3, shuffle=True):
    print(b, global_mean_pool(b.x, b.batch).sum().item())

print(
    degree(ei[0]).sum(),
    to_dense_adj(ei).sum(),
    softmax(torch.ones(40), ei[0]).sum(),
    add_self_loops(ei)[0].shape,
    to_undirected(ei).shape,
    coalesce(ei).shape,
    scatter(torch.ones(40), ei[0], reduce="mean").sum(),
)
