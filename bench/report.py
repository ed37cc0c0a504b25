"""Tables in Markdown, growth exponents, and a log-log plot as SVG."""
import html
import math


def exponent(points):
    """Slope of log(y) over log(x) by least squares; None for fewer than two points."""
    points = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(points) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else None


def extrapolate(points, x):
    """y at x when growth goes on as between the last two points."""
    (x0, y0), (x1, y1) = points[-2:]
    return y1 * (x / x1) ** (math.log(y1 / y0) / math.log(x1 / x0))


def seconds(value):
    if value is None:
        return "–"
    for unit, size in (("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


COLORS = ("#1b6ca8", "#c44536", "#3a7d44", "#8d5a97", "#b08900", "#555555")


def plot(title, series, x_label, y_label):
    """An SVG of {name: {"points": [(x, y)…], "fitted": [(x, y)…]}}; fitted stretches are dashed."""
    width, height, left, bottom, top, right = 760, 440, 80, 60, 44, 190
    every = [p for s in series.values() for p in s["points"] + s.get("fitted", []) if p[0] > 0 and p[1] > 0]
    if not every:
        return ""
    x_low, x_high = (f(math.log10(x) for x, _ in every) for f in (min, max))
    y_low = math.floor(min(math.log10(y) for _, y in every))
    y_high = math.ceil(max(math.log10(y) for _, y in every))
    x_high, y_high = max(x_high, x_low + 0.1), max(y_high, y_low + 1)

    def at(x, y):
        return (left + (math.log10(x) - x_low) / (x_high - x_low) * (width - left - right),
                height - bottom - (math.log10(y) - y_low) / (y_high - y_low) * (height - top - bottom))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="24" font-size="15">{html.escape(title)}</text>']
    for power in range(y_low, y_high + 1):
        _, y = at(10 ** x_low, 10.0 ** power)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{seconds(10.0 ** power)}</text>')
    for x in sorted({x for x, _ in every}):
        px, py = at(x, 10.0 ** y_low)
        out.append(f'<line x1="{px:.1f}" y1="{py:.1f}" x2="{px:.1f}" y2="{top}" stroke="#f2f2f2"/>')
        out.append(f'<text x="{px:.1f}" y="{py + 18:.1f}" text-anchor="middle">{x:,}</text>')
    for color, (name, s) in zip(COLORS * 3, series.items()):
        for points, dashed in ((s["points"], ""), (s["points"][-1:] + s.get("fitted", []), ' stroke-dasharray="5 4"')):
            if len(points) > 1:
                path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (at(*p) for p in points))
                out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dashed}/>')
        for p in s["points"]:
            px, py = at(*p)
            out.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="{color}"/>')
        last = (s["points"] + s.get("fitted", []))[-1:]
        if last:
            px, py = at(*last[0])
            out.append(f'<text x="{px + 8:.1f}" y="{py + 4:.1f}" fill="{color}">{html.escape(name)}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 14}" text-anchor="middle">{html.escape(x_label)}</text>')
    out.append(f'<text x="16" y="{top - 6}">{html.escape(y_label)}</text></svg>')
    return "\n".join(out) + "\n"
