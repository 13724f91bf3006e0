"""Operations that Python programs do with an API server, each checked: `operations.py NAME` does one, `list` names all.

The server is that of KUBECONFIG. With LOCKGATE_CLIENTS_ON_REAL it is a bare kube-apiserver: what only controllers do is then
not waited for.
"""

import base64
import json
import os
import sys
import time

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

NAMESPACE = "default"
BARE = bool(os.environ.get("LOCKGATE_CLIENTS_ON_REAL"))
PATIENCE = 100


def equal(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def refused(code, reason, call, *arguments, **named):
    """The call must be refused with that code and reason."""
    try:
        call(*arguments, **named)
    except ApiException as error:
        equal("the code", error.status, code)
        equal("the reason", json.loads(error.body)["reason"], reason)
        return json.loads(error.body)
    raise AssertionError(f"{call.__name__} was not refused")


def until(what, holds):
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        time.sleep(0.02)


def gone(call, *arguments):
    try:
        call(*arguments)
    except ApiException as error:
        return error.status == 404
    return False


def config_map(name, labels=None, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)


def deployment(name):
    labels = {"app": name}
    container = client.V1Container(name="main", image="main:1", ports=[client.V1ContainerPort(container_port=80)])
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(replicas=2, selector=client.V1LabelSelector(match_labels=labels), template=template)
    return client.V1Deployment(metadata=client.V1ObjectMeta(name=name), spec=spec)


def crud():
    """Typed objects: create, read, replace, delete, and the refusals."""
    core, apps = client.CoreV1Api(), client.AppsV1Api()
    made = core.create_namespaced_config_map(NAMESPACE, config_map("one", key="value"))
    equal("the age", made.metadata.creation_timestamp.tzinfo is not None, True)
    refused(409, "AlreadyExists", core.create_namespaced_config_map, NAMESPACE, config_map("one"))
    made.data["key"] = "changed"
    replaced = core.replace_namespaced_config_map("one", NAMESPACE, made)
    equal("the data", core.read_namespaced_config_map("one", NAMESPACE).data, {"key": "changed"})
    equal("the version is new", replaced.metadata.resource_version != made.metadata.resource_version, True)
    refused(409, "Conflict", core.replace_namespaced_config_map, "one", NAMESPACE, made)
    refused(404, "NotFound", core.read_namespaced_config_map, "missing", NAMESPACE)
    status = refused(422, "Invalid", core.create_namespaced_config_map, NAMESPACE, config_map("Not A Name"))
    equal("the cause", status["details"]["causes"][0]["field"], "metadata.name")
    secret = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"word": "secret"})
    core.create_namespaced_secret(NAMESPACE, secret)
    stored = core.read_namespaced_secret("s", NAMESPACE)
    equal("the secret", base64.b64decode(stored.data["word"]), b"secret")
    equal("its type", stored.type, "Opaque")

    apps.create_namespaced_deployment(NAMESPACE, deployment("web"))
    scale = apps.read_namespaced_deployment_scale("web", NAMESPACE)
    scale.spec.replicas = 4
    apps.replace_namespaced_deployment_scale("web", NAMESPACE, scale)
    found = apps.read_namespaced_deployment("web", NAMESPACE)
    equal("the replicas", (found.spec.replicas, found.metadata.generation), (4, 2))
    found.status.observed_generation = 2
    equal(
        "the status",
        apps.replace_namespaced_deployment_status("web", NAMESPACE, found).status.observed_generation,
        2,
    )
    dry = apps.create_namespaced_deployment(NAMESPACE, deployment("dry"), dry_run="All")
    equal("what was not made", dry.metadata.name, "dry")
    refused(404, "NotFound", apps.read_namespaced_deployment, "dry", NAMESPACE)
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="other")))
    until("the namespace is there", lambda: core.read_namespace("other").status.phase == "Active")
    version = client.VersionApi().get_code()
    equal("the version", f"{version.major}.{version.minor}", "1.35")


def patches():
    """Patches of all kinds, by the content type that each has."""
    core, apps = client.CoreV1Api(), client.AppsV1Api()
    core.create_namespaced_config_map(NAMESPACE, config_map("one", a="1", b="2"))
    # A list is a JSON patch; a mapping is a strategic patch.
    changed = core.patch_namespaced_config_map(
        "one", NAMESPACE, [{"op": "replace", "path": "/data/a", "value": "x"}, {"op": "remove", "path": "/data/b"}]
    )
    equal("after the JSON patch", changed.data, {"a": "x"})
    refused(
        422, "Invalid", core.patch_namespaced_config_map, "one", NAMESPACE,
        [{"op": "test", "path": "/data/a", "value": "y"}],
    )
    apps.create_namespaced_deployment(NAMESPACE, deployment("web"))
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    found = apps.patch_namespaced_deployment("web", NAMESPACE, patch)
    names = sorted(container.name for container in found.spec.template.spec.containers)
    equal("containers after the strategic patch", names, ["main", "side"])
    deployments = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="apps/v1", kind="Deployment")
    found = deployments.patch(
        body=patch, name="web", namespace=NAMESPACE, content_type="application/merge-patch+json"
    )
    equal("containers after the merge patch", [c.name for c in found.spec.template.spec.containers], ["side"])
    found = apps.patch_namespaced_deployment_status("web", NAMESPACE, {"status": {"replicas": 3}})
    equal("the status", (found.status.replicas, found.spec.replicas), (3, 2))
    found = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 6}})
    equal("the scale", found.spec.replicas, 6)
    core.patch_namespaced_config_map("one", NAMESPACE, {"metadata": {"annotations": {"note": "x"}}, "data": {"a": None}})
    equal("after a null", core.read_namespaced_config_map("one", NAMESPACE).data, None)


def apply():
    """Server-side apply by the dynamic client, by several managers."""
    kinds = dynamic.DynamicClient(client.ApiClient())
    maps = kinds.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1", "b": "2"}}

    def applied(manager, data, **options):
        return kinds.server_side_apply(
            maps, body=body | {"data": data}, name="one", namespace=NAMESPACE, field_manager=manager, **options
        )

    first = applied("left", {"a": "1", "b": "2"})
    equal("nothing new", applied("left", {"a": "1", "b": "2"}).metadata.resourceVersion, first.metadata.resourceVersion)
    applied("right", {"c": "3"})
    try:
        applied("right", {"a": "9", "c": "3"})
        raise AssertionError("what the other owns was taken")
    except ConflictError as error:
        cause = json.loads(error.body)["details"]["causes"][0]
        equal("the cause", (cause["reason"], cause["field"]), ("FieldManagerConflict", ".data.a"))
    equal("by force", applied("right", {"a": "9", "c": "3"}, force_conflicts=True).data.a, "9")
    left = applied("left", {"b": "2"})
    equal("what is left", left.data.to_dict(), {"a": "9", "b": "2", "c": "3"})
    managers = {entry.manager: entry.operation for entry in left.metadata.managedFields}
    equal("the managers", managers, {"left": "Apply", "right": "Apply"})


def watches():
    """A watch that is resumed where it was, with bookmarks, and one that waits for something."""
    core = client.CoreV1Api()
    first = core.create_namespaced_config_map(NAMESPACE, config_map("first", key="0"))
    second = core.create_namespaced_config_map(NAMESPACE, config_map("second", key="0"))
    core.delete_namespaced_config_map("second", NAMESPACE)
    seen, stream = [], watch.Watch()
    # The server ends a watch after its time; the generator goes on from the last version that it saw.
    options = {"resource_version": first.metadata.resource_version, "timeout_seconds": 1}
    for event in stream.stream(core.list_namespaced_config_map, NAMESPACE, **options):
        seen.append((event["type"], event["object"].metadata.name))
    equal("the events", seen, [("ADDED", "second"), ("DELETED", "second")])
    core.patch_namespaced_config_map("first", NAMESPACE, {"data": {"key": "1"}})
    again = [
        (event["type"], event["object"].data)
        for event in stream.stream(
            core.list_namespaced_config_map, NAMESPACE, resource_version=stream.resource_version, timeout_seconds=1
        )
    ]
    equal("after it was resumed", again, [("MODIFIED", {"key": "1"})])
    equal("the object", second.metadata.name, "second")

    # Bookmarks as they come over the line.
    answer = core.list_namespaced_config_map(
        NAMESPACE, watch=True, allow_watch_bookmarks=True, send_initial_events=True,
        resource_version_match="NotOlderThan", timeout_seconds=1, _preload_content=False,
    )
    events = [json.loads(line) for line in answer.read().splitlines()]
    marks = [event["object"]["metadata"] for event in events if event["type"] == "BOOKMARK"]
    equal("the end of the initial events", marks[0]["annotations"], {"k8s.io/initial-events-end": "true"})
    equal("a version", marks[0]["resourceVersion"] != "", True)
    equal("the initial events", [e["type"] for e in events if e["object"]["metadata"].get("name") == "first"], ["ADDED"])

    old = watch.Watch()
    try:
        for _ in old.stream(core.list_namespaced_config_map, NAMESPACE, resource_version="nonsense", timeout_seconds=1):
            raise AssertionError("an event of no version")
    except ApiException as error:
        equal("a version that is none", error.status, 500)


def pages():
    """Lists by pages, by selectors, and at a version."""
    core = client.CoreV1Api()
    for number in range(23):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{number:02}", {"half": str(number % 2)}))
    names, token, count = [], None, 0
    while True:
        page = core.list_namespaced_config_map(NAMESPACE, limit=10, _continue=token, label_selector="half")
        names += [item.metadata.name for item in page.items]
        token, count = page.metadata._continue, count + 1
        if count == 1:
            equal("what is left", page.metadata.remaining_item_count, None)
            core.delete_namespaced_config_map("page-15", NAMESPACE)
        if not token:
            break
    equal("the names", names, [f"page-{number:02}" for number in range(23)])
    equal("the pages", count, 3)
    odd = core.list_namespaced_config_map(NAMESPACE, label_selector="half in (1),half!=0")
    equal("by label", len(odd.items), 10)
    one = core.list_config_map_for_all_namespaces(field_selector="metadata.name=page-03,metadata.namespace=default")
    equal("by field", [item.metadata.name for item in one.items], ["page-03"])
    refused(400, "BadRequest", core.list_namespaced_config_map, NAMESPACE, _continue="nonsense")
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="half=0")
    left = core.list_namespaced_config_map(NAMESPACE, label_selector="half")
    equal("what is left", len(left.items), 10)


def deletes():
    """Deletes with propagation, preconditions and finalizers."""
    core = client.CoreV1Api()

    def child(name, owner, **more):
        reference = client.V1OwnerReference(
            api_version="v1", kind="ConfigMap", name=owner.metadata.name, uid=owner.metadata.uid, **more
        )
        body = config_map(name)
        body.metadata.owner_references = [reference]
        return core.create_namespaced_config_map(NAMESPACE, body)

    for policy in ["Background", "Foreground", "Orphan"]:
        owner = core.create_namespaced_config_map(NAMESPACE, config_map(f"owner-{policy.lower()}"))
        name = child(f"child-{policy.lower()}", owner, block_owner_deletion=True).metadata.name
        core.delete_namespaced_config_map(owner.metadata.name, NAMESPACE, propagation_policy=policy)
        if BARE:
            continue
        until(f"the owner goes ({policy})", lambda: gone(core.read_namespaced_config_map, owner.metadata.name, NAMESPACE))
        if policy == "Orphan":
            equal("no owners", core.read_namespaced_config_map(name, NAMESPACE).metadata.owner_references, None)
        else:
            until(f"the child goes ({policy})", lambda: gone(core.read_namespaced_config_map, name, NAMESPACE))

    body = config_map("held")
    body.metadata.finalizers = ["example.org/hold"]
    core.create_namespaced_config_map(NAMESPACE, body)
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="00000000-0000-0000-0000-000000000000"))
    refused(409, "Conflict", core.delete_namespaced_config_map, "held", NAMESPACE, body=options)
    core.delete_namespaced_config_map("held", NAMESPACE)
    held = core.read_namespaced_config_map("held", NAMESPACE)
    equal("it is held", held.metadata.deletion_timestamp is not None, True)
    core.patch_namespaced_config_map("held", NAMESPACE, {"metadata": {"finalizers": None}})
    equal("it is let go", gone(core.read_namespaced_config_map, "held", NAMESPACE), True)


def customs():
    """Definitions, and custom objects by the two ways of this client."""
    extensions, objects = client.ApiextensionsV1Api(), client.CustomObjectsApi()
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "maximum": 10},
                    "colour": {"type": "string", "default": "grey"},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        },
    }
    extensions.create_custom_resource_definition(definition)

    def established():
        found = extensions.read_custom_resource_definition("things.example.org")
        return any(c.type == "Established" and c.status == "True" for c in found.status.conditions or [])

    until("the definition is established", established)
    where = ("example.org", "v1", NAMESPACE, "things")
    until("it is served", lambda: not gone(objects.list_namespaced_custom_object, *where))
    body = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"size": 3}}
    made = objects.create_namespaced_custom_object(*where, body)
    equal("the default", made["spec"], {"size": 3, "colour": "grey"})
    too_large = body | {"metadata": {"name": "two"}, "spec": {"size": 11}}
    refused(422, "Invalid", objects.create_namespaced_custom_object, *where, too_large)
    made["spec"]["size"] = 4
    objects.replace_namespaced_custom_object(*where, "one", made)
    objects.patch_namespaced_custom_object_status(*where, "one", {"status": {"phase": "ready"}})
    found = objects.get_namespaced_custom_object(*where, "one")
    equal("after all", (found["spec"]["size"], found["status"], found["metadata"]["generation"]), (4, {"phase": "ready"}, 2))

    kinds = dynamic.DynamicClient(client.ApiClient())
    things = kinds.resources.get(api_version="example.org/v1", kind="Thing")
    equal("by the dynamic client", things.get(name="one", namespace=NAMESPACE).spec.size, 4)
    things.patch(
        body={"spec": {"colour": "red"}}, name="one", namespace=NAMESPACE, content_type="application/merge-patch+json"
    )
    listed = things.get(namespace=NAMESPACE)
    equal("the list", [(item.metadata.name, item.spec.colour) for item in listed.items], [("one", "red")])
    things.delete(name="one", namespace=NAMESPACE)
    try:
        things.get(name="one", namespace=NAMESPACE)
        raise AssertionError("it is still there")
    except NotFoundError:
        pass
    extensions.delete_custom_resource_definition("things.example.org")
    until("the definition is gone", lambda: gone(extensions.read_custom_resource_definition, "things.example.org"))


def tokens():
    """Who a token says one is, and what its roles allow."""
    core, roles = client.CoreV1Api(), client.RbacAuthorizationV1Api()
    core.create_namespaced_service_account(NAMESPACE, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot")))
    request = client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600)
    )
    token = core.create_namespaced_service_account_token("robot", NAMESPACE, request).status.token
    own = client.Configuration.get_default_copy()
    own.cert_file = own.key_file = None
    own.api_key, own.api_key_prefix = {"authorization": token}, {"authorization": "Bearer"}
    robot = client.ApiClient(own)
    me = client.AuthenticationV1Api(robot).create_self_subject_review(client.V1SelfSubjectReview())
    equal("the user", me.status.user_info.username, "system:serviceaccount:default:robot")
    refused(403, "Forbidden", client.CoreV1Api(robot).list_namespaced_config_map, NAMESPACE)
    role = client.V1Role(
        metadata=client.V1ObjectMeta(name="reader"),
        rules=[client.V1PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["list"])],
    )
    roles.create_namespaced_role(NAMESPACE, role)
    binding = client.V1RoleBinding(
        metadata=client.V1ObjectMeta(name="reader"),
        subjects=[client.RbacV1Subject(kind="ServiceAccount", name="robot", namespace=NAMESPACE)],
        role_ref=client.V1RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="reader"),
    )
    roles.create_namespaced_role_binding(NAMESPACE, binding)

    def allowed():
        try:
            client.CoreV1Api(robot).list_namespaced_config_map(NAMESPACE)
            return True
        except ApiException as error:
            equal("the code", error.status, 403)
            return False

    until("the role counts", allowed)
    refused(403, "Forbidden", client.CoreV1Api(robot).delete_namespaced_config_map, "x", NAMESPACE)
    own.api_key = {"authorization": "nonsense"}
    refused(401, "Unauthorized", client.CoreV1Api(client.ApiClient(own)).list_namespaced_config_map, NAMESPACE)


CHECKS = {check.__name__: check for check in [apply, crud, customs, deletes, pages, patches, tokens, watches]}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS and sys.argv[1] != "list":
        sys.exit("usage: operations.py NAME|list")
    if sys.argv[1] == "list":
        print("\n".join(sorted(CHECKS)))
    else:
        config.load_kube_config(os.environ["KUBECONFIG"])
        CHECKS[sys.argv[1]]()
