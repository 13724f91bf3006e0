package main

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"
)

// discover finds every resource with two requests, maps kinds, and follows new definitions.
func discover(w *world) {
	client := discovery.NewDiscoveryClientForConfigOrDie(w.config)
	version := ok(client.ServerVersion())
	equal("the minor", version.Major+"."+strings.TrimSuffix(version.Minor, "+"), "1.35")
	groups, resources, err := client.ServerGroupsAndResources()
	must(err)
	equal("requests", len(w.asked.with("GET /api")), 2)
	if len(groups) < 12 || len(resources) < 12 {
		fail("%d groups, %d lists of resources", len(groups), len(resources))
	}
	preferred := ok(client.ServerPreferredNamespacedResources())
	if !slices.ContainsFunc(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, preferred), of("apps/v1")) {
		fail("apps/v1 is not preferred")
	}

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	for kind, expected := range map[schema.GroupKind]string{
		{Group: "apps", Kind: "Deployment"}:                              "apps/v1, Resource=deployments namespace",
		{Kind: "Node"}:                                                   "/v1, Resource=nodes root",
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:          "autoscaling/v2, Resource=horizontalpodautoscalers namespace",
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: "rbac.authorization.k8s.io/v1, Resource=clusterrolebindings root",
	} {
		mapping := ok(mapper.RESTMapping(kind))
		equal(kind.String(), mapping.Resource.String()+" "+string(mapping.Scope.Name()), expected)
	}
	short := restmapper.NewShortcutExpander(mapper, memory.NewMemCacheClient(client), nil)
	equal("deploy", ok(short.ResourceFor(schema.GroupVersionResource{Resource: "deploy"})).Resource, "deployments")

	_, err = mapper.RESTMapping(schema.GroupKind{Group: gadgets.Group, Kind: "Gadget"})
	refused("a kind that is not there", err, meta.IsNoMatchError)
	w.define()
	w.until("the new kind is mapped", func() bool {
		mapper.Reset()
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: gadgets.Group, Kind: "Gadget"})
		return err == nil && mapping.Resource == gadgets
	})

	root := openapi3.NewRoot(client.OpenAPIV3())
	versions := ok(root.GroupVersions())
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	if !slices.Contains(versions, apps) {
		fail("OpenAPI knows no apps/v1: %v", versions)
	}
	spec := ok(root.GVSpec(apps))
	if spec.Components.Schemas["io.k8s.api.apps.v1.Deployment"] == nil {
		fail("OpenAPI has no schema of a Deployment")
	}
	w.until("OpenAPI knows the new kind", func() bool {
		spec, err := root.GVSpec(gadgets.GroupVersion())
		return err == nil && spec.Components.Schemas["org.example.v1.Gadget"] != nil
	})
}

func of(version string) func(*metav1.APIResourceList) bool {
	return func(list *metav1.APIResourceList) bool { return list.GroupVersion == version }
}
