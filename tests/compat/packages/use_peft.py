# packages: peft==0.21.2, accelerate==1.15.0, psutil==7.2.2, transformers==5.24.0
# packages: huggingface_hub==2.4.0, httpx2==2.16.2, httpcore2==2.16.2, anyio==4.16.0
# packages: h11==0.16.0, idna==3.20, truststore==0.10.5, regex==2026.11.19
"""Networks with a few parameters added: LoRA, DoRA, IA3, prompts, prefixes."""

import torch
import transformers as T
from peft import (
    IA3Config,
    LoHaConfig,
    LoraConfig,
    PrefixTuningConfig,
    PromptTuningConfig,
    get_peft_model,
)


def lm():
    torch.manual_seed(0)
    return T.GPT2LMHeadModel(
        T.GPT2Config(
            vocab_size=50,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=64,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


ids = torch.arange(20).view(2, 10)
for c in (
    LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["c_attn"]),
    LoraConfig(
        task_type="CAUSAL_LM", r=4, use_dora=True, target_modules=["c_attn"], fan_in_fan_out=True
    ),
    IA3Config(task_type="CAUSAL_LM", target_modules=["c_attn"], feedforward_modules=[]),
    PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
    PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
    LoHaConfig(task_type="CAUSAL_LM", r=4, target_modules=["lm_head"]),
):
    try:
        m = get_peft_model(lm(), c)
        o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], 1e-2)
        m.eval()
        for _ in range(2):
            l = m(input_ids=ids, labels=ids).loss
            o.zero_grad()
            l.backward()
            o.step()
        print(type(c).__name__, l.item(), m.get_nb_trainable_parameters())
        if isinstance(c, LoraConfig):
            mm = m.merge_and_unload()
            print(mm(input_ids=ids).logits.sum().item())
    except Exception as e:
        print(type(c).__name__, "FAIL", type(e).__name__, str(e)[:300])
