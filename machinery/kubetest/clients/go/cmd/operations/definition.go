package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
)

var gadgets = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "gadgets"}

// define makes a definition by the typed client, in protobuf, and waits for it as operators do.
func (w *world) define() {
	config := rest.CopyConfig(w.config)
	config.ContentType = protobufType
	config.AcceptContentTypes = protobufType + ",application/json"
	client := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	least := 0.0
	count := apiextensionsv1.JSONSchemaProps{
		Type: "integer", Minimum: &least, Default: &apiextensionsv1.JSON{Raw: []byte("1")},
	}
	key := "id"
	listType := "map"
	parts := apiextensionsv1.JSONSchemaProps{
		Type: "array", XListType: &listType, XListMapKeys: []string{key},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Required: []string{key},
			Properties: map[string]apiextensionsv1.JSONSchemaProps{key: text, "size": count},
		}},
	}
	root := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {
			Type:         "object",
			Properties:   map[string]apiextensionsv1.JSONSchemaProps{"count": count, "colour": text, "parts": parts},
			XValidations: apiextensionsv1.ValidationRules{{Rule: "self.count < 100", Message: "too many"}},
		},
		"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"ready": text}},
	}}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gadgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ShortNames: []string{"gd"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
	ok(client.Create(w.ctx, definition, metav1.CreateOptions{}))
	w.until("the definition is established", func() bool {
		found := ok(client.Get(w.ctx, definition.Name, metav1.GetOptions{}))
		for _, condition := range found.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
}

func gadget(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// definition: custom objects by the dynamic client and its informers.
func definition(w *world) {
	w.define()
	client := dynamic.NewForConfigOrDie(w.config)
	objects := client.Resource(gadgets).Namespace("default")
	w.until("its objects are served", func() bool {
		_, err := objects.List(w.ctx, metav1.ListOptions{})
		return err == nil
	})
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "default", nil)
	lister := factory.ForResource(gadgets).Lister()
	factory.Start(w.ctx.Done())
	factory.WaitForCacheSync(w.ctx.Done())

	made := ok(objects.Create(w.ctx, gadget("one", map[string]any{"colour": "red", "unknown": "x"}), metav1.CreateOptions{}))
	spec := made.Object["spec"].(map[string]any)
	equal("the default", spec["count"], int64(1))
	equal("what the schema does not know", spec["unknown"], nil)
	_, err := objects.Create(w.ctx, gadget("two", map[string]any{"count": int64(-1)}), metav1.CreateOptions{})
	refused("less than the least", err, errors.IsInvalid)
	_, err = objects.Create(w.ctx, gadget("two", map[string]any{"count": int64(100)}), metav1.CreateOptions{})
	refused("what the rule forbids", err, errors.IsInvalid)
	_, err = objects.Create(w.ctx, gadget("two", map[string]any{"unknown": "x"}), metav1.CreateOptions{FieldValidation: "Strict"})
	refused("an unknown field, strictly", err, errors.IsBadRequest)

	ready := []byte(`{"status":{"ready":"yes"},"spec":{"colour":"blue"}}`)
	status := ok(objects.Patch(w.ctx, "one", types.MergePatchType, ready, metav1.PatchOptions{}, "status"))
	equal("the colour after a change of the status", status.Object["spec"].(map[string]any)["colour"], "red")
	equal("the status", status.Object["status"].(map[string]any)["ready"], "yes")
	equal("the generation", status.GetGeneration(), int64(1))
	replace := []byte(`[{"op":"test","path":"/spec/colour","value":"red"},{"op":"replace","path":"/spec/colour","value":"green"}]`)
	green := ok(objects.Patch(w.ctx, "one", types.JSONPatchType, replace, metav1.PatchOptions{}))
	equal("the generation after a change of the spec", green.GetGeneration(), int64(2))
	_, err = objects.Patch(w.ctx, "one", types.StrategicMergePatchType, ready, metav1.PatchOptions{})
	refused("a strategic patch", err, errors.IsUnsupportedMediaType)

	// Managers own items of a list by their keys.
	part := func(id string, size int64) map[string]any { return map[string]any{"id": id, "size": size} }
	left := gadget("applied", map[string]any{"parts": []any{part("a", 1), part("b", 2)}})
	right := gadget("applied", map[string]any{"parts": []any{part("c", 3)}})
	ok(objects.Apply(w.ctx, "applied", left, metav1.ApplyOptions{FieldManager: "left"}))
	ok(objects.Apply(w.ctx, "applied", right, metav1.ApplyOptions{FieldManager: "right"}))
	left.Object["spec"] = map[string]any{"parts": []any{part("b", 2)}}
	merged := ok(objects.Apply(w.ctx, "applied", left, metav1.ApplyOptions{FieldManager: "left"}))
	equal("parts", merged.Object["spec"].(map[string]any)["parts"], []any{part("b", 2), part("c", 3)})
	right.Object["spec"] = map[string]any{"parts": []any{part("b", 9)}}
	_, err = objects.Apply(w.ctx, "applied", right, metav1.ApplyOptions{FieldManager: "right"})
	refused("an item of another manager", err, errors.IsConflict)

	w.until("the informer knows both", func() bool { return len(ok(lister.List(labels.Everything()))) == 2 })
	must(objects.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	w.until("the informer knows none", func() bool { return len(ok(lister.List(labels.Everything()))) == 0 })
}
