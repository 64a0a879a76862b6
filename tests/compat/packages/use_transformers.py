# packages: transformers==5.24.0, huggingface_hub==2.4.0, httpx2==2.16.2, httpcore2==2.16.2
# packages: anyio==4.16.0, h11==0.16.0, idna==3.20, truststore==0.10.5, regex==2026.11.19
"""The model code of a large library: small random networks trained, texts generated."""

import warnings

import torch
import transformers as T

warnings.simplefilter("ignore")
T.logging.set_verbosity_error()
WORDS = 99
ids = torch.arange(20).view(2, 10) * 7 % WORDS
pixels = torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32).sin()
small = dict(
    vocab_size=WORDS,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=37,
    max_position_embeddings=64,
)
layers = dict(
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=37,
    decoder_ffn_dim=37,
)
patches = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=37,
    image_size=32,
    patch_size=8,
)
text = dict(input_ids=ids, labels=ids)
image = dict(pixel_values=pixels, labels=torch.tensor([1, 2]))
grouped = dict(small, num_key_value_heads=2)


def trained(name, config, inputs, generates=False):
    torch.manual_seed(0)
    model = getattr(T, name)(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        loss = model(**inputs).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, loss.item())
    model.eval()
    if generates:
        options = dict(max_new_tokens=6, pad_token_id=0)
        print(model.generate(ids[:, :5], do_sample=False, **options).tolist())
        torch.manual_seed(1)
        print(model.generate(ids[:, :5], do_sample=True, top_k=20, top_p=0.9, **options).tolist())
        print(model.generate(ids[:, :5], num_beams=3, **options).tolist())


gpt = T.GPT2Config(vocab_size=WORDS, n_embd=32, n_layer=2, n_head=4, n_positions=64, eos_token_id=2)
t5 = T.T5Config(
    vocab_size=WORDS,
    d_model=32,
    d_kv=8,
    d_ff=37,
    num_layers=2,
    num_heads=4,
    decoder_start_token_id=0,
)
mamba = T.MambaConfig(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, state_size=8)
trained("GPT2LMHeadModel", gpt, text, generates=True)
trained("LlamaForCausalLM", T.LlamaConfig(**grouped), text, generates=True)
trained("Qwen2ForCausalLM", T.Qwen2Config(**grouped), text, generates=True)
trained("T5ForConditionalGeneration", t5, text, generates=True)
trained("MambaForCausalLM", mamba, text)
trained("BertForMaskedLM", T.BertConfig(**small), text)
trained("DebertaV2ForMaskedLM", T.DebertaV2Config(**small), text)
trained("BartForConditionalGeneration", T.BartConfig(vocab_size=WORDS, **layers), text)
trained("ViTForImageClassification", T.ViTConfig(num_labels=5, **patches), image)
clip = T.CLIPConfig(text_config=small, vision_config=patches, projection_dim=16)
trained("CLIPModel", clip, dict(pixel_values=pixels, input_ids=ids, return_loss=True))
whisper = T.WhisperConfig(
    vocab_size=WORDS,
    num_mel_bins=20,
    max_source_positions=30,
    max_target_positions=40,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=3,
    **layers,
)
sound = torch.linspace(-1, 1, 2 * 20 * 60).view(2, 20, 60)
trained("WhisperForConditionalGeneration", whisper, dict(input_features=sound, labels=ids[:, :5]))
