# SPDX-License-Identifier: MIT
"""Draws a picture of a setup: the responses that each client got in each 10 seconds, and the
allowed number."""
import html

WIDTH, HEIGHT, LEFT, TOP, GAP = 640, 110, 60, 34, 42
COLOURS = {'accepted': '#2a7ab8', 'refused': '#c8382c', 'lost': '#8a4fa3', 'allowed': '#3b8f3b'}


def bars(series, x_step, y_of):
    """Yields bars of accepted, refused and lost requests, stacked."""
    for index, counts in enumerate(series):
        base = 0
        for name, count in zip(('accepted', 'refused', 'lost'), counts):
            if count:
                top, bottom = y_of(base + count), y_of(base)
                yield (f'<rect x="{LEFT + index * x_step + 1:.1f}" y="{top:.1f}" width="{x_step - 2:.1f}" height="{bottom - top:.1f}" '
                       f'fill="{COLOURS[name]}"/>')
            base += count


def panel(result, allowed, offset):
    series, step = result['series'], result['step_s']
    most = max([allowed * 1.2] + [sum(counts) for counts in series])

    def y_of(count):
        return offset + HEIGHT - HEIGHT * count / most

    title = (f'{result["client"]} {result["phase"]}: {result["whole"]["goodput"]:.1f} %, last half {result["half"]["goodput"]:.1f} %; '
             f'refused {result["whole"]["refused_part"]:.2f} %; {result["offences"]} offences, {result["bans"]} bans')
    yield f'<text x="{LEFT}" y="{offset - 8}">{html.escape(title)}</text>'
    yield from bars(series, WIDTH / len(series), y_of)
    y = y_of(allowed)
    yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}" stroke="{COLOURS["allowed"]}" stroke-dasharray="5 3"/>'
    yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{allowed:.0f}</text>'
    yield f'<text x="{LEFT + WIDTH}" y="{offset + HEIGHT + 14}" text-anchor="end">{len(series) * step} s</text>'


def plot(name, results, rate):
    """Returns SVG text; `rate` is the allowed number of requests per second."""
    judged = [each for each in results if 'series' in each]
    height = TOP + len(judged) * (HEIGHT + GAP) + 10
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="16" font-weight="bold">{html.escape(name)}</text>']
    lines += [f'<text x="{LEFT + 250 + 90 * i}" y="16" fill="{colour}">{word}</text>' for i, (word, colour) in enumerate(COLOURS.items())]
    for index, result in enumerate(judged):
        lines += panel(result, rate * result['step_s'], TOP + 20 + index * (HEIGHT + GAP))
    return '\n'.join([*lines, '</svg>', ''])
