"""An SVG picture of loss curves."""

import math

COLOURS = ["#1f6fb4", "#d1495b", "#2e8b57", "#8d6cab"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 64, 20, 44, 52


def ticks(low, high):
    """About five round numbers between low and high."""
    power = 10.0 ** math.floor(math.log10((high - low) / 6))
    step = next(power * k for k in (1, 2, 5, 10) if (high - low) / (power * k) <= 6)
    first = int(low / step) + (low > int(low / step) * step)
    found = []
    while first * step <= high + step * 1e-6:
        found.append(round(first * step, 10))
        first += 1
    return found


def smooth(values, count):
    """Means over at most `count` windows, with the step at the end of each window."""
    size = max(1, len(values) // count)
    return [
        (min(i + size, len(values)), sum(values[i : i + size]) / len(values[i : i + size]))
        for i in range(0, len(values), size)
    ]


def save(path, title, curves):
    """curves: name -> losses, one for each step."""
    points = {name: smooth(losses, 120) for name, losses in curves.items()}
    last = max(len(losses) for losses in curves.values())
    top = max(loss for row in points.values() for _, loss in row)

    def x(step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    def y(loss):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * loss / top

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="16">{title}</text>',
    ]
    for loss in ticks(0, top):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(loss):.1f}" y2="{y(loss):.1f}" '
            'stroke="#ddd"/>'
            f'<text x="{LEFT - 8}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss:g}</text>'
        )
    for step in ticks(0, last):
        parts.append(
            f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">'
            f"{step:g}</text>"
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">step</text>')
    for i, (name, row) in enumerate(points.items()):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in row)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT - 8}" y="{TOP + 18 + 20 * i}" text-anchor="end" '
            f'fill="{colour}">{name}</text>'
        )
    parts.append("</svg>\n")
    path.write_text("\n".join(parts), encoding="utf-8")
