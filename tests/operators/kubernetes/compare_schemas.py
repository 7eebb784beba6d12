#!/usr/bin/env python3
"""Compares our schemas, and the manifests themselves, with schemas that Kubernetes' own API description became: each field of ours must be
there with a type and values that are allowed there, and what is required there must be required here.

    usage: compare_schemas.py FOLDER [SERVICE_MONITOR_CRD]

FOLDER has a file for each kind, as in the Python package kubernetes-validate: kubernetes-json-schema/v1.36.0-local-strict. The CRD is the
Prometheus operator's YAML file. docs/kubernetes.md says what was compared.
"""
import json
import pathlib
import re
import sys

import jsonschema
import yaml

import manifest_schemas
import manifests_test
import slice_schema

SCALARS = {str: "string", bool: "boolean", int: "integer"}


class Theirs:
    """Schemas of a folder, with every reference replaced by what it names."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.files = {}

    def read(self, name):
        if name not in self.files:
            self.files[name] = json.loads((self.folder / name).read_text())
        return self.files[name]

    def of(self, document_schema):
        version = document_schema["properties"]["apiVersion"]["const"]
        group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", version)
        return self.whole(self.read(f"{document_schema['properties']['kind']['const'].lower()}-{group}.json"))

    def whole(self, schema):
        if isinstance(schema, list):
            return [self.whole(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        if isinstance(schema.get("$ref"), str):
            file, _, place = schema["$ref"].partition("#/")
            found = self.read(pathlib.PurePath(file).name or "_definitions.json")
            for step in filter(None, place.split("/")):
                found = found[step]
            return self.whole(found)
        return {key: self.whole(value) for key, value in schema.items() if key != "description"}


def types(schema):
    """Empty: any."""
    for key in "oneOf", "anyOf":
        if key in schema and all("type" in option for option in schema[key]):
            return set().union(*map(types, schema[key]))
    if schema.get("x-kubernetes-int-or-string"):
        return {"string", "integer"}
    if "type" in schema:
        return {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return {SCALARS[type(value)] for value in values}


def differences(ours, theirs, path):
    allowed = types(theirs) | ({"integer"} if "number" in types(theirs) else set())
    if allowed and not types(ours) <= allowed:
        yield f"{path}: {sorted(types(ours))} here, {sorted(allowed)} there"
    values = ours.get("enum", [ours["const"]] if "const" in ours else [])
    if "enum" in theirs and values and not set(values) <= set(theirs["enum"]):
        yield f"{path}: {values} here, {theirs['enum']} there"
    for name in set(theirs.get("required", [])) - set(ours.get("required", [])) if "properties" in ours else ():
        yield f"{path}: {name} is required there"
    fields = theirs.get("properties", {})
    is_open = not fields and theirs.get("additionalProperties", True) is True
    for name, field in ours.get("properties", {}).items():
        if name in fields:
            yield from differences(field, fields[name], f"{path}.{name}")
        elif not is_open:
            yield f"{path}.{name}: not there"
    for key in "items", "additionalProperties":
        if isinstance(ours.get(key), dict) and isinstance(theirs.get(key), dict):
            yield from differences(ours[key], theirs[key], f"{path}[]")


def fields_in(schema):
    """How many fields of ours were compared."""
    return sum(1 + fields_in(field) for field in schema.get("properties", {}).values()) + sum(
        fields_in(schema[key]) for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict))


def main(folder, monitor=None):
    theirs = Theirs(folder)
    by_kind = {}
    for schema in (*manifest_schemas.KINDS.values(), slice_schema.SLICE):
        kind = schema["properties"]["kind"]["const"]
        if kind != "ServiceMonitor":
            by_kind[kind] = (schema, theirs.of(schema))
        elif monitor:
            crd = yaml.safe_load(pathlib.Path(monitor).read_text())
            by_kind[kind] = (schema, crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    found = [problem for kind, pair in by_kind.items() for problem in differences(*pair, kind)]
    count = 0
    for name in manifests_test.SETS:
        for document in manifests_test.documents(name):
            if document["kind"] in by_kind:
                count += 1
                found += [f"{name}: {document['kind']} {'.'.join(map(str, error.path))}: {error.message}" for error in
                          jsonschema.Draft7Validator(by_kind[document["kind"]][1]).iter_errors(document)]
    print(*found, f"{len(by_kind)} kinds, {sum(fields_in(ours) for ours, _ in by_kind.values())} fields and {count} documents compared: "
          f"{len(found)} differences", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
