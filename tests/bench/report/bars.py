"""Horizontal bars as SVG."""
import math
from xml.sax.saxutils import escape

ROW, GAP, LABEL, WIDTH = 14, 6, 190, 560
COLOURS = ["#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b7791f", "#4a5568"]


def x_of(value, low, high):
    """The place of a ratio on a logarithmic axis; ratios outside are at its end."""
    share = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    return LABEL + WIDTH * min(1.0, max(0.0, share))


def ratio_bars(title, rows, names, low=0.25, high=32):
    """rows: [(label, {name: ratio})]. Bars go from 1, where both are as fast, to the ratio."""
    ticks = [t for t in (0.25, 0.5, 1, 2, 4, 8, 16, 32) if low <= t <= high]
    shapes, y = [], 60
    for label, ratios in rows:
        shapes.append('<text x="%d" y="%d" text-anchor="end">%s</text>' %
                      (LABEL - 8, y + ROW * len(names) / 2 + 4, escape(label)))
        for i, name in enumerate(names):
            if name in ratios:
                a, b = sorted((x_of(1, low, high), x_of(ratios[name], low, high)))
                shapes.append('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s, %s: %.2f</title></rect>' %
                              (a, y + i * ROW, max(1, b - a), ROW - 2, COLOURS[i], escape(label), escape(name), ratios[name]))
        y += ROW * len(names) + GAP
    head = ['<text x="%d" y="18" font-size="15">%s</text>' % (LABEL, escape(title))]
    for i, name in enumerate(names):
        head.append('<rect x="%d" y="28" width="10" height="10" fill="%s"/><text x="%d" y="37">%s</text>' %
                    (LABEL + 110 * i, COLOURS[i], LABEL + 110 * i + 14, escape(name)))
    for tick in ticks:
        x = x_of(tick, low, high)
        head.append('<line x1="%.1f" y1="56" x2="%.1f" y2="%d" stroke="%s"/><text x="%.1f" y="52" text-anchor="middle">%g</text>' %
                    (x, x, y, "#1a202c" if tick == 1 else "#cbd5e0", x, tick))
    return page(y + 10, head + shapes)


def share_bars(title, rows):
    """rows: [(label, share of 1)]."""
    shapes, y = [], 60
    for label, share in rows:
        shapes.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (LABEL - 8, y + 11, escape(label)))
        shapes.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%.0f %%</text>' %
                      (LABEL, y, WIDTH * min(1.0, share), ROW - 2, COLOURS[0], LABEL + WIDTH * min(1.0, share) + 5, y + 11,
                       100 * share))
        y += ROW + GAP
    head = ['<text x="%d" y="18" font-size="15">%s</text>' % (LABEL, escape(title))]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x = LABEL + WIDTH * tick
        head.append('<line x1="%.1f" y1="56" x2="%.1f" y2="%d" stroke="#cbd5e0"/><text x="%.1f" y="52" text-anchor="middle">'
                    '%.0f %%</text>' % (x, x, y, x, 100 * tick))
    return page(y + 10, head + shapes)


def page(height, shapes):
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" font-family="sans-serif" '
            'font-size="11">\n<rect width="{w}" height="{h}" fill="white"/>\n{s}\n</svg>\n').format(
                w=LABEL + WIDTH + 60, h=int(height), s="\n".join(shapes))
