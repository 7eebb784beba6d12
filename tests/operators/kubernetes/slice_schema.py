"""What resource.k8s.io/v1 allows in a ResourceSlice of the fields that the driver writes, after staging/src/k8s.io/api/resource/v1/types.go
of Kubernetes 1.36. Strict: any other field is a problem.
"""
import re

import jsonschema

QUANTITY = r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$"
LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
SUBDOMAIN = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def strict(required, **properties):
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def text(pattern=None, longest=253):
    return {"type": "string", "maxLength": longest, **({"pattern": pattern} if pattern else {})}


QUANTITIES = text(QUANTITY)
POLICY = strict(["default"], default=QUANTITIES, validRange=strict(["min"], min=QUANTITIES, max=QUANTITIES, step=QUANTITIES),
                validValues={"type": "array", "maxItems": 10, "items": QUANTITIES})
ATTRIBUTE = {**strict([], string=text(longest=64), int={"type": "integer"}, bool={"type": "boolean"}, version=text(longest=64)),
             "minProperties": 1, "maxProperties": 1}
NAMES = {"pattern": r"^([a-z0-9.-]{1,63}/)?[A-Za-z_][A-Za-z0-9_]{0,31}$"}
DEVICE = strict(
    ["name"], name=text(LABEL, 63), allowMultipleAllocations={"type": "boolean"},
    attributes={"type": "object", "propertyNames": NAMES, "additionalProperties": ATTRIBUTE},
    capacity={"type": "object", "propertyNames": NAMES, "additionalProperties": strict(["value"], value=QUANTITIES, requestPolicy=POLICY)},
    taints={"type": "array", "maxItems": 16,
            "items": strict(["key", "effect"], key=text(r"^([a-z0-9.-]+/)?[A-Za-z0-9_.-]{1,63}$"), value=text(longest=63),
                            effect={"enum": ["None", "NoSchedule", "NoExecute"]}, timeAdded=text())})
OWNER = strict(["apiVersion", "kind", "name", "uid"], apiVersion=text(), kind=text(), name=text(), uid=text(), controller={"type": "boolean"})
SLICE = strict(
    ["apiVersion", "kind", "metadata", "spec"], apiVersion={"const": "resource.k8s.io/v1"}, kind={"const": "ResourceSlice"},
    metadata=strict(["name"], name=text(SUBDOMAIN), ownerReferences={"type": "array", "items": OWNER}, resourceVersion=text(), uid=text()),
    spec=strict(["driver", "pool", "nodeName"], driver=text(SUBDOMAIN, 63), nodeName=text(SUBDOMAIN),
                pool=strict(["name", "generation", "resourceSliceCount"], name=text(SUBDOMAIN), generation={"type": "integer", "minimum": 0},
                            resourceSliceCount={"type": "integer", "minimum": 1}),
                devices={"type": "array", "maxItems": 64, "items": DEVICE}))


def in_bytes(quantity):
    number, unit = re.fullmatch(r"([0-9]+)(Ki|Mi|Gi|Ti|)", quantity).groups()
    return int(number) * UNITS[unit]


def policy_problems(device):
    """What the API server checks of a requestPolicy beyond its fields."""
    for name, capacity in device.get("capacity", {}).items():
        policy = capacity.get("requestPolicy")
        if policy is None:
            continue
        if not device.get("allowMultipleAllocations"):
            yield f"{name}: requestPolicy needs allowMultipleAllocations"
        bounds = policy.get("validRange")
        if bounds:
            least, step, default = in_bytes(bounds["min"]), in_bytes(bounds.get("step", "1")), in_bytes(policy["default"])
            if not least <= default <= in_bytes(capacity["value"]) or (default - least) % step:
                yield f"{name}: the default is no legal request"


def problems(item):
    found = [f"{'.'.join(map(str, error.path))}: {error.message}" for error in jsonschema.Draft7Validator(SLICE).iter_errors(item)]
    if not found:
        for device in item["spec"].get("devices", []):
            found += [f"{device['name']}: {problem}" for problem in policy_problems(device)]
            if len(device.get("attributes", {})) + len(device.get("capacity", {})) > 32:
                found.append(f"{device['name']}: more than 32 attributes and capacities")
    return found
