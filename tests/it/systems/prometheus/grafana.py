"""Reads dashboards by Grafana's own model (grafana-foundation-sdk) and compares: a field that the model does not know is lost."""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(ours, theirs, path):
    """The paths of our fields that the model's reading does not have."""
    if isinstance(ours, dict):
        for name, value in ours.items():
            if not isinstance(theirs, dict) or name not in theirs:
                if value is not None:
                    yield f"{path}.{name}"
            else:
                yield from lost(value, theirs[name], f"{path}.{name}")
    elif isinstance(ours, list):
        if not isinstance(theirs, list) or len(ours) != len(theirs):
            yield path
        else:
            for index, (one, other) in enumerate(zip(ours, theirs)):
                yield from lost(one, other, f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path}: {ours!r} is read as {theirs!r}"


register_default_plugins()
faults = []
for file in sys.argv[1:]:
    with open(file, encoding="utf-8") as text:
        ours = json.load(text)
    theirs = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(ours)))
    found = list(lost(ours, theirs, file.rsplit("/", 1)[-1]))
    print(f"{file}: {len(ours['panels'])} panels, {len(found)} fields that the model does not know")
    faults += found
print("\n".join(faults))
sys.exit(bool(faults))
