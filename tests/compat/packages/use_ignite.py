# packages: pytorch-ignite==0.5.5
"""Training loops of ignite: engines, events, metrics, schedules of learning rates."""

import logging

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, PiecewiseLinear
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, Precision, RunningAverage
from torch.utils.data import DataLoader, TensorDataset

logging.disable()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loss = torch.nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(torch.randn(20, 4), torch.randint(0, 3, (20,))), 5)
trainer = create_supervised_trainer(model, optimizer, loss)
RunningAverage(output_transform=lambda out: out).attach(trainer, "running")
metrics = {"accuracy": Accuracy(), "loss": Loss(loss), "precision": Precision(average=True)}
evaluator = create_supervised_evaluator(model, metrics | {"confusion": ConfusionMatrix(3)})
schedule = PiecewiseLinear(optimizer, "lr", [(0, 0.0), (4, 0.02), (8, 0.0)])
trainer.add_event_handler(Events.ITERATION_STARTED, schedule)
stopping = EarlyStopping(1, lambda engine: -engine.state.metrics["loss"], trainer)
evaluator.add_event_handler(Events.COMPLETED, stopping)


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(loader)
    print(engine.state.epoch, engine.state.metrics["running"], evaluator.state.metrics)


trainer.run(loader, max_epochs=3)
print(model[0].bias, optimizer.param_groups[0]["lr"])
