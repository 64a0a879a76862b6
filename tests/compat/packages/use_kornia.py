# packages: kornia==0.9.0, kornia_rs==0.2.0
"""Filters, colours, geometry, morphology, losses and augmentation of images."""

import kornia as K
import torch

x = torch.linspace(0, 1, 2 * 3 * 24 * 24).view(2, 3, 24, 24).sin().abs().requires_grad_(True)
for n, f in dict(
    gauss=lambda x: K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    sobel=K.filters.sobel,
    canny=lambda x: K.filters.canny(x)[0],
    lap=lambda x: K.filters.laplacian(x, 3),
    hsv=K.color.rgb_to_hsv,
    lab=K.color.rgb_to_lab,
    rot=lambda x: K.geometry.rotate(x, torch.tensor([30.0, 10.0])),
    warp=lambda x: K.geometry.warp_affine(
        x, torch.tensor([[[1, 0.1, 2], [0, 1, 1.0]]]).expand(2, 2, 3), (24, 24)
    ),
    ssim=lambda x: K.metrics.ssim(x, x.flip(-1), 5),
    harris=K.feature.harris_response,
    med=lambda x: K.filters.median_blur(x, (3, 3)),
    dil=lambda x: K.morphology.dilation(x, torch.ones(3, 3)),
    eq=K.enhance.equalize_clahe,
    pyr=lambda x: K.geometry.pyrdown(x),
    persp=lambda x: K.geometry.get_perspective_transform(
        torch.tensor([[[0.0, 0], [1, 0], [1, 1], [0, 1]]]),
        torch.tensor([[[0.0, 0], [1, 0.1], [1.1, 1], [0, 1]]]),
    ),
    psnr=lambda x: K.losses.psnr_loss(x, x * 0.9, 1.0),
    tv=K.losses.total_variation,
    focal=lambda x: K.losses.focal_loss(x, torch.ones(2, 24, 24).long(), alpha=0.5),
).items():
    try:
        y = f(x)
        g = torch.autograd.grad(y.sum(), x, allow_unused=True)[0] if y.requires_grad else None
        print(n, y.float().mean().item(), None if g is None else g.abs().mean().item())
    except Exception as e:
        print(n, "FAIL", type(e).__name__, str(e)[:200])
torch.manual_seed(0)
aug = K.augmentation.AugmentationSequential(
    K.augmentation.RandomHorizontalFlip(p=0.5),
    K.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    K.augmentation.RandomAffine(15.0, p=1.0),
)
print(aug(x.detach()).mean().item())
