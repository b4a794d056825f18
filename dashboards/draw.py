#!/usr/bin/env python3
"""Draws each dashboard of this folder as a picture, from the data of a Prometheus.

    python3 -m venv target/draw && target/draw/bin/pip install matplotlib
    target/draw/bin/python dashboards/draw.py http://127.0.0.1:9090 OUT --minutes 5

It runs the panels' own queries, with every environment, operation and TPP chosen.
"""
import argparse
import json
import math
import pathlib
import re
import textwrap
import time
import urllib.parse
import urllib.request
import zlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.dates as dates
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, MaxNLocator

COLUMNS = 24
ROW = 0.3  # inches for a unit of height of Grafana's grid
STEPS = 240  # points of a line
MOST = 9  # entries of a legend, lines of a table
FONT, LINE = 15, 0.26  # points of a value, inches of one below the other
PALETTE = [tuple(shade * part for part in one) for shade in (1, 0.6) for one in matplotlib.colormaps["tab10"].colors]
COLOURS = {"green": "#56a64b", "orange": "#f2933a", "red": "#d44a3a"}
INK, PALE, PAPER = "#24292e", "#8b949e", "#f4f5f5"
SIZES = {
    "s": ((86400 * 365, " y"), (86400, " d"), (3600, " h"), (60, " min"), (1, " s"), (1e-3, " ms"), (1e-6, " µs")),
    "bytes": ((2**30, " GiB"), (2**20, " MiB"), (2**10, " KiB")),
    "short": ((1e9, " G"), (1e6, " M"), (1e3, " k")),
}


class Prometheus:
    def __init__(self, url, minutes, interval):
        self.url, self.interval = url.rstrip("/"), interval
        self.end = time.time()
        self.start = self.end - 60 * minutes
        self.replicas = sorted({one["metric"].get("instance", "") for one in self.ask("query", query="up")})

    def ask(self, call, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{call}?{query}", timeout=30) as answer:
            return json.load(answer)["data"]["result"]

    def series(self, expr):
        """The labels, times and values of each series of a panel's query."""
        step = max((self.end - self.start) / STEPS, 1)
        for one in self.ask("query_range", query=self.filled(expr), start=self.start, end=self.end, step=step):
            times, values = zip(*one["values"])
            yield one["metric"], times, [float(value) for value in values]

    def latest(self, panel):
        """The legend and the value of each of a panel's series at the end."""
        return [
            (legend(target["legendFormat"], one["metric"]), float(one["value"][1]))
            for target in panel["targets"]
            for one in self.ask("query", query=self.filled(target["expr"]), time=self.end)
        ]

    def filled(self, expr):
        expr = expr.replace("$__rate_interval", self.interval)
        for variable in ("job", "operation", "tpp"):
            expr = expr.replace(f"${variable}", ".*")
        return expr


def number(value, unit):
    """A value as Grafana writes it, roughly."""
    if math.isnan(value):
        return "–"
    if unit == "percentunit":
        return f"{value * 100:.4g} %"
    if unit == "dateTimeFromNow":
        return number(abs(value / 1000 - time.time()), "s") + (" ago" if value / 1000 < time.time() else "")
    if unit == "bool_yes_no":
        return "yes" if value else "no"
    suffix = {"reqps": "/s", "ops": "/s", "cps": "/s"}.get(unit, "")
    for size, name in SIZES.get(unit, SIZES["short"]):
        if abs(value) >= size:
            return f"{value / size:.3g}{name}{suffix}"
    return f"{value:.3g}{suffix}"


def shown(value, panel):
    """A value in the words of the panel, or by its unit."""
    defaults = panel["fieldConfig"]["defaults"]
    for mapping in defaults.get("mappings", []):
        if word := mapping["options"].get(f"{value:g}"):
            return word["text"]
    return number(value, defaults["unit"])


def legend(template, labels):
    return re.sub(r"{{(\w+)}}", lambda name: labels.get(name[1], ""), template)


def colour(value, steps):
    passed = [step for step in steps if step["value"] is None or value >= step["value"]]
    return COLOURS[passed[-1]["color"]]


def paints(found, replicas):
    """A colour for each series: that of its replica on every panel, or else one by its name, or the next that is free."""
    taken, own = [], len(replicas)
    for name, labels in found:
        replica = labels.get("instance")
        wanted = replicas.index(replica) if replica in replicas else own + zlib.crc32(name.encode()) % max(len(PALETTE) - own, 1)
        others = [own + index % max(len(PALETTE) - own, 1) for index in range(wanted - own, wanted - own + len(PALETTE))]
        taken.append(next((index for index in (wanted, *others) if index not in taken), wanted))
    return [PALETTE[index % len(PALETTE)] for index in taken]


def lines(axes, panel, prometheus, unit):
    stacked = panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal"
    found = [
        (legend(target["legendFormat"], labels), times, values, labels)
        for target in panel["targets"]
        for labels, times, values in prometheus.series(target["expr"])
    ]
    found.sort(key=lambda one: -max((value for value in one[2] if value == value), default=0))
    colours = paints([(name, labels) for name, _, _, labels in found], prometheus.replicas)
    at = sorted({moment for _, times, _, _ in found for moment in times})
    below = [0.0] * len(at)
    days = [moment / 86400 for moment in at]
    for index, (name, times, values, _) in enumerate(found):
        name = name if index < MOST else "_nolegend_"
        known = dict(zip(times, values))
        if stacked:
            over = [low + max(known.get(moment, 0), 0) for low, moment in zip(below, at)]
            axes.fill_between(days, below, over, alpha=0.55, linewidth=0.6, color=colours[index], label=name)
            below = over
        else:
            axes.plot(days, [known.get(moment, math.nan) for moment in at], linewidth=1.1, color=colours[index], label=name)
    axes.set_xlim(prometheus.start / 86400, prometheus.end / 86400)
    axes.set_ylim(bottom=0, top=panel["fieldConfig"]["defaults"].get("max"))
    axes.xaxis_date()
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M" if prometheus.end - prometheus.start > 900 else "%H:%M:%S"))
    axes.yaxis.set_major_locator(MaxNLocator(1 if unit == "bool_yes_no" else 4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, unit)))
    axes.grid(color="#e3e5e8", linewidth=0.6)
    axes.tick_params(labelsize=6.5, colors=PALE, length=0)
    if found:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, fontsize=5.8, labelcolor=INK, frameon=False,
                    handlelength=1, columnspacing=1, borderaxespad=0.2)
    return bool(found)


def stat(axes, panel, prometheus, _):
    axes.axis("off")
    found, steps = prometheus.latest(panel), panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    # Side by side, and from the third on one below the other.
    if len(found) <= 2:
        for index, (name, value) in enumerate(found):
            x = (index + 0.5) / len(found)
            axes.text(x, 0.5, shown(value, panel), ha="center", va="center", fontsize=FONT, color=colour(value, steps), weight="bold")
            axes.text(x, 0.1, name, ha="center", va="center", fontsize=6.5, color=PALE)
        return bool(found)
    place = axes.get_position().height * axes.figure.get_figheight()
    first = found[:max(1, int(place / 0.12))]
    size = min(FONT, FONT * place / len(first) / LINE)
    for index, (name, value) in enumerate(first):
        y = 1 - (index + 0.5) / len(first)
        axes.text(0.02, y, name, va="center", fontsize=6.5, color=PALE)
        axes.text(0.98, y, shown(value, panel), ha="right", va="center", fontsize=size, color=colour(value, steps), weight="bold")
    return bool(found)


def table(axes, panel, prometheus, _):
    axes.axis("off")
    rows = prometheus.latest(panel)
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    most = min(MOST, int(axes.get_position().height * axes.figure.get_figheight() / 0.16))
    for index, (name, value) in enumerate(rows[:most]):
        y = 0.95 - index / most
        axes.text(0.01, y, textwrap.shorten(name, 8 * panel["gridPos"]["w"], placeholder=" …"), va="top", fontsize=7, color=INK)
        axes.text(0.99, y, shown(value, panel), va="top", ha="right", fontsize=7, color=colour(value, steps) if len(steps) > 1 else INK)
    return bool(rows)


def draw(dashboard, prometheus, path):
    panels = dashboard["panels"]
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    figure = plt.figure(figsize=(14, height * ROW + 0.5), facecolor=PAPER)
    inches = figure.get_figheight()
    figure.text(0.012, 1 - 0.3 / inches, dashboard["title"], fontsize=13, weight="bold", color=INK)
    empty = []
    for panel in panels:
        place = panel["gridPos"]
        left, width = place["x"] / COLUMNS, place["w"] / COLUMNS
        top = 1 - (place["y"] * ROW + 0.5) / inches
        if panel["type"] == "row":
            figure.text(left + 0.012, top - 0.24 / inches, panel["title"], fontsize=10, color=INK)
            continue
        bottom = top - place["h"] * ROW / inches
        edge = 0.05 / inches
        box = plt.Rectangle((left + 0.006, bottom + edge), width - 0.008, top - bottom - 2 * edge, zorder=-1)
        box.set(facecolor="white", edgecolor="#dcdfe3", linewidth=0.8)
        figure.add_artist(box)
        figure.text(left + 0.012, top - 0.22 / inches, panel["title"], fontsize=8, weight="bold", color=INK)
        low, inset = (0.72 / inches, 0.042) if panel["type"] == "timeseries" else (0.1 / inches, 0.012)
        axes = figure.add_axes((left + inset, bottom + low, width - inset - 0.01, top - bottom - low - 0.33 / inches))
        for spine in axes.spines.values():
            spine.set_visible(False)
        drawn = {"timeseries": lines, "stat": stat, "table": table}[panel["type"]]
        if not drawn(axes, panel, prometheus, panel["fieldConfig"]["defaults"]["unit"]):
            text = panel["fieldConfig"]["defaults"].get("noValue", "No data")
            axes.text(0.5, 0.5, text, ha="center", fontsize=9, color=PALE, transform=axes.transAxes)
            empty.append(panel["title"])
    figure.savefig(path, dpi=80)
    plt.close(figure)
    print(path.name, f"{len(panels)} panels; without data: {', '.join(empty) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prometheus", help="the URL of a Prometheus")
    parser.add_argument("out", type=pathlib.Path, help="the folder of the pictures")
    parser.add_argument("--minutes", type=float, default=60, help="the time that they show, until now")
    parser.add_argument("--rate-interval", default="1m", help="$__rate_interval")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    prometheus = Prometheus(options.prometheus, options.minutes, options.rate_interval)
    for source in sorted(pathlib.Path(__file__).parent.glob("*.json")):
        draw(json.loads(source.read_text()), prometheus, options.out / f"{source.stem}.png")


if __name__ == "__main__":
    main()
