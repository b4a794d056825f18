"""Holds what the gateway did against its description.

judge.py OPENAPI forwarded FILE: each line of FILE is a request that the core got: nothing that the description forbids.
judge.py OPENAPI payloads FILE: each line is a body with the gateway's judgement: the description's is the same. Its schema is a component,
or that of the body of a POST to this path.
"""

import base64
import json
import sys
from urllib.parse import unquote, unquote_plus

from jsonschema import Draft202012Validator


class Description:
    def __init__(self, document):
        self.document = document
        self.validators = {}

    def faults(self, schema, value):
        key = json.dumps(schema)
        if key not in self.validators:
            whole = {**schema, "components": self.document["components"]}
            self.validators[key] = Draft202012Validator(whole)
        return [fault.message[:200] for fault in self.validators[key].iter_errors(value)]

    def resolve(self, value):
        reference = value.get("$ref")
        if reference is None:
            return value
        found = self.document
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        return found

    def operation(self, method, path):
        """The operation of a path, and its path parameters. A literal segment goes before a parameter."""
        found = []
        segments = path.split("/")
        for template, item in self.document["paths"].items():
            parts = template.split("/")
            named = [(part[1:-1], unquote(segment)) for part, segment in zip(parts, segments) if part.startswith("{")]
            same = all(part.startswith("{") or part == segment for part, segment in zip(parts, segments))
            if len(parts) == len(segments) and same and method.lower() in item:
                found.append((len(named), item[method.lower()], dict(named)))
        return min(found, key=lambda one: one[0])[1:] if found else (None, {})

    def forwarded(self, request):
        path, _, query = request["target"].partition("?")
        operation, named = self.operation(request["method"], path)
        if operation is None:
            return ["no such operation"]
        pairs = [piece.partition("=") for piece in query.split("&") if piece]
        pairs = [(unquote_plus(name), unquote_plus(value)) for name, _, value in pairs]
        headers = {name.lower(): value for name, value in request["headers"]}
        faults = []
        for parameter in map(self.resolve, operation["parameters"]):
            name, place = parameter["name"], parameter["in"]
            if place == "path":
                values = [named[name]] if name in named else []
            elif place == "query":
                values = [value for other, value in pairs if other == name]
            else:
                values = [headers[name.lower()]] if name.lower() in headers else []
            if not values and parameter["required"]:
                faults.append(f"{place} {name}: missing")
            for value in values:
                read = as_read(parameter["schema"], value)
                faults += [f"{place} {name}: {fault}" for fault in self.faults(parameter["schema"], read)]
        return faults + self.body(operation, base64.b64decode(request["body"]))

    def body(self, operation, body):
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            return [f"body: {fault}" for fault in self.faults(schema, json.loads(body))]
        is_free = operation["operationId"].endswith("consent-create")
        return [] if is_free or body.replace(b" ", b"") in (b"", b"{}") else ["body: there is none to be"]


def as_read(schema, text):
    """A parameter's text as the value that its schema is about."""
    match schema.get("type"):
        case "integer" if text.isascii() and text.isdigit():
            return int(text)
        case "boolean" if text in ("true", "false"):
            return text == "true"
        case "array":
            return [item.strip() for item in text.split(",")]
    return text


def main():
    openapi, what, file = sys.argv[1:]
    with open(openapi, encoding="utf-8") as opened:
        description = Description(json.load(opened))
    found, count = 0, 0
    with open(file, encoding="utf-8") as opened:
        for line in opened:
            count += 1
            case = json.loads(line)
            if what == "forwarded":
                faults = description.forwarded(case)
                if not faults:
                    continue
            else:
                schema = {"$ref": f"#/components/schemas/{case['schema']}"}
                if case["schema"].startswith("/"):
                    operation, _ = description.operation("POST", case["schema"])
                    schema = operation["requestBody"]["content"]["application/json"]["schema"]
                faults = description.faults(schema, case["body"])
                if (not faults) == case["passes"]:
                    continue
            found += 1
            print(faults, line[:2000])
    print(f"{count} {what}, {found} otherwise than described")
    sys.exit(1 if found else 0)


main()
