"""The fields of the Kubernetes objects that the manifests use, after the API reference of 1.36. Strict: any other field is a problem,
because a server drops it in silence.
"""
from slice_schema import QUANTITY, strict, text

LABELS = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}}
WORDS = {"type": "array", "items": {"type": "string"}}
NUMBER = {"type": "integer", "minimum": 0}
FLAG = {"type": "boolean"}
AMOUNTS = {"type": "object", "additionalProperties": {"anyOf": [text(QUANTITY), text(r"^[0-9]+m$"), {"type": "integer"}]}}
METADATA = strict(["name"], name=text(), namespace=text(), labels=LABELS)


def many(item):
    return {"type": "array", "items": item}


def named(api_version, kind, **properties):
    return strict(["apiVersion", "kind", "metadata", *properties], apiVersion={"const": api_version}, kind={"const": kind}, metadata=METADATA,
                  **properties)


SELECTOR = strict(["matchLabels"], matchLabels=LABELS)
SECURITY = strict([], privileged=FLAG, runAsUser=NUMBER, allowPrivilegeEscalation=FLAG, readOnlyRootFilesystem=FLAG,
                  capabilities=strict([], drop=WORDS, add=WORDS), seccompProfile=strict(["type"], type={"enum": ["RuntimeDefault", "Unconfined"]}))
PROBE = {**strict([], exec=strict(["command"], command=WORDS), httpGet=strict(["path", "port"], path=text(), port={"type": ["string", "integer"]}),
                  initialDelaySeconds=NUMBER, periodSeconds=NUMBER, timeoutSeconds=NUMBER, failureThreshold=NUMBER),
         "oneOf": [{"required": ["exec"]}, {"required": ["httpGet"]}]}
ENVIRONMENT = {**strict(["name"], name=text(), value=text(), valueFrom=strict(["fieldRef"], fieldRef=strict(["fieldPath"], fieldPath=text()))),
               "oneOf": [{"required": ["value"]}, {"required": ["valueFrom"]}]}
CONTAINER = strict(
    ["name", "image"], name=text(), image=text(), command=WORDS, args=WORDS, env=many(ENVIRONMENT),
    ports=many(strict(["containerPort"], name=text(longest=15), containerPort=NUMBER, protocol={"enum": ["TCP"]})),
    livenessProbe=PROBE, readinessProbe=PROBE, securityContext=SECURITY,
    resources=strict([], requests=AMOUNTS, limits=AMOUNTS, claims=many(strict(["name"], name=text(), request=text()))),
    volumeMounts=many(strict(["name", "mountPath"], name=text(), mountPath=text(), readOnly=FLAG)))
VOLUME = strict(["name"], name=text(), configMap=strict(["name"], name=text()),
                secret=strict(["secretName"], secretName=text(), defaultMode={"type": "integer", "minimum": 0, "maximum": 0o777}),
                hostPath=strict(["path"], path=text(), type={"enum": ["Directory", "DirectoryOrCreate"]}))
POD = strict(
    ["containers"], containers=many(CONTAINER), initContainers=many(CONTAINER), volumes=many(VOLUME), serviceAccountName=text(),
    priorityClassName=text(), hostPID=FLAG, nodeSelector=LABELS, terminationGracePeriodSeconds=NUMBER, restartPolicy={"enum": ["Never"]},
    tolerations=many(strict([], key=text(), operator={"enum": ["Exists"]}, effect={"enum": ["NoSchedule"]})),
    resourceClaims=many(strict(["name"], name=text(), resourceClaimName=text(), resourceClaimTemplateName=text())))
OPAQUE = strict(["driver", "parameters"], driver={"const": "spillway.dev"}, parameters={"type": "object"})
CEL = many(strict(["cel"], cel=strict(["expression"], expression={"type": "string"})))
REQUEST = strict(["name", "exactly"], name=text(), exactly=strict(
    ["deviceClassName"], deviceClassName=text(), count=NUMBER, selectors=CEL, capacity=strict(["requests"], requests=AMOUNTS)))
CLAIM = strict(["devices"], devices=strict(["requests"], requests=many(REQUEST), config=many(strict(["opaque"], requests=WORDS, opaque=OPAQUE)),
                                           constraints=many(strict([], requests=WORDS, matchAttribute=text()))))
SECRET_KEY = strict(["name", "key"], name=text(), key=text())
PORTS = many(strict(["port"], protocol={"enum": ["TCP"]}, port=NUMBER))
EXPRESSION = {"type": "string"}

KINDS = {
    "Namespace": strict(["apiVersion", "kind", "metadata"], apiVersion={"const": "v1"}, kind={"const": "Namespace"}, metadata=METADATA),
    "ServiceAccount": strict(["apiVersion", "kind", "metadata"], apiVersion={"const": "v1"}, kind={"const": "ServiceAccount"}, metadata=METADATA),
    "ConfigMap": named("v1", "ConfigMap", data={"type": "object", "additionalProperties": {"type": "string"}}),
    "ClusterRole": named("rbac.authorization.k8s.io/v1", "ClusterRole", rules=many(strict(
        ["apiGroups", "resources", "verbs"], apiGroups=WORDS, resources=WORDS,
        verbs=many({"enum": ["get", "list", "watch", "create", "update", "patch", "delete"]})))),
    "ClusterRoleBinding": named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding",
                                roleRef=strict(["apiGroup", "kind", "name"], apiGroup=text(), kind=text(), name=text()),
                                subjects=many(strict(["kind", "name", "namespace"], kind=text(), name=text(), namespace=text()))),
    "DaemonSet": named("apps/v1", "DaemonSet", spec=strict(
        ["selector", "template"], selector=SELECTOR,
        updateStrategy=strict(["type", "rollingUpdate"], type={"const": "RollingUpdate"},
                              rollingUpdate=strict([], maxUnavailable=NUMBER, maxSurge=NUMBER)),
        template=strict(["metadata", "spec"], metadata=strict([], labels=LABELS), spec=POD))),
    "Pod": named("v1", "Pod", spec=POD),
    "Service": named("v1", "Service", spec=strict(["selector", "ports"], clusterIP={"const": "None"}, selector=LABELS, ports=many(
        strict(["port"], name=text(), port=NUMBER, targetPort={"type": ["string", "integer"]}, protocol={"enum": ["TCP"]})))),
    "ServiceMonitor": named("monitoring.coreos.com/v1", "ServiceMonitor", spec=strict(["selector", "endpoints"], selector=SELECTOR, endpoints=many(
        strict(["port"], port=text(), interval=text(), authorization=strict(["credentials"], type={"const": "Bearer"}, credentials=SECRET_KEY),
               relabelings=many(strict([], targetLabel=text(), replacement=text(), sourceLabels=WORDS)))))),
    "NetworkPolicy": named("networking.k8s.io/v1", "NetworkPolicy", spec=strict(
        ["podSelector"], podSelector=SELECTOR, policyTypes=many({"enum": ["Ingress", "Egress"]}),
        ingress=many(strict([], ports=PORTS, **{"from": many(strict([], namespaceSelector=SELECTOR))})), egress=many(strict([], ports=PORTS)))),
    "DeviceClass": named("resource.k8s.io/v1", "DeviceClass", spec=strict([], selectors=CEL, extendedResourceName=text(),
                                                                           config=many(strict(["opaque"], opaque=OPAQUE)))),
    "ResourceClaimTemplate": named("resource.k8s.io/v1", "ResourceClaimTemplate", spec=strict(["spec"], spec=CLAIM)),
    "ValidatingAdmissionPolicy": named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", spec=strict(
        ["validations"], failurePolicy={"enum": ["Fail"]},
        matchConstraints=strict(["resourceRules"], resourceRules=many(strict(
            ["apiGroups", "apiVersions", "operations", "resources"], apiGroups=WORDS, apiVersions=WORDS,
            operations=many({"enum": ["CREATE", "UPDATE", "DELETE"]}), resources=WORDS))),
        matchConditions=many(strict(["name", "expression"], name=text(), expression=EXPRESSION)),
        variables=many(strict(["name", "expression"], name=text(), expression=EXPRESSION)),
        validations=many(strict(["expression"], expression=EXPRESSION, message=text())))),
    "ValidatingAdmissionPolicyBinding": named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", spec=strict(
        ["policyName", "validationActions"], policyName=text(), validationActions=many({"enum": ["Deny"]}))),
}
CLUSTER_WIDE = {"Namespace", "ClusterRole", "ClusterRoleBinding", "DeviceClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
