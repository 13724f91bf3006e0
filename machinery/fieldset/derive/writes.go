package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// writeVector is a sequence of writes to one object.
type writeVector struct {
	Kind  string      `json:"kind"`
	Steps []writeStep `json:"steps"`
}

type writeStep struct {
	// Apply or Update.
	Operation   string `json:"operation"`
	Manager     string `json:"manager"`
	APIVersion  string `json:"apiVersion"`
	Subresource string `json:"subresource,omitempty"`
	Force       bool   `json:"force,omitempty"`
	Now         string `json:"now"`
	// What is sent; for an update the whole object.
	Object any `json:"object"`
	// The object afterwards, or why there is none.
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
	Code   int32  `json:"code,omitempty"`
}

// versions gives objects another apiVersion, and nothing else.
type versions struct{}

func (versions) Convert(in, out, context interface{}) error { return errors.New("unused") }
func (versions) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return "", "", errors.New("unused")
}
func (versions) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	object := in.(*unstructured.Unstructured)
	gvk, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{object.GroupVersionKind()})
	if !ok {
		return nil, fmt.Errorf("no version for %v", object.GroupVersionKind())
	}
	out := object.DeepCopy()
	out.SetGroupVersionKind(gvk)
	return out, nil
}

type nothing struct{}

func (nothing) Default(runtime.Object) {}
func (nothing) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

func (w *world) manager(k kind, subresource string) *managedfields.FieldManager {
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, version := range []string{k.apiVersion(), "golden.test/v1", "golden.test/v1beta1"} {
		if k.kind != "Gadget" {
			break
		}
		path := map[string]string{"": "status", "status": "spec"}[subresource]
		reset[fieldpath.APIVersion(version)] = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie(path)))
	}
	gvk := schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		w.converter, versions{}, nothing{}, nothing{}, gvk, gvk.GroupVersion(), subresource, reset)
	check(err)
	return manager
}

func (w *world) sequence(random *rand.Rand, k kind) writeVector {
	m := maker{random, w.models, 3, 0}
	vector := writeVector{Kind: k.kind}
	var live *unstructured.Unstructured
	for i := 0; i < 7; i++ {
		now := time.Date(2024, 1, 1, 0, i, 0, 0, time.UTC)
		in := k
		step := writeStep{
			Operation: "Apply",
			Manager:   string(rune('p' + m.Intn(3))),
			Now:       now.Format(time.RFC3339),
		}
		if k.kind == "Gadget" && m.percent(20) {
			in.version, in.model = "v1beta1", "gadget.v1beta1"
		}
		if k.kind == "Gadget" && live != nil && m.percent(15) {
			step.Subresource = "status"
		}
		step.APIVersion = in.apiVersion()
		if m.percent(40) {
			step.Operation = "Update"
		} else {
			step.Force = m.percent(60)
		}
		var sent map[string]any
		switch {
		case live != nil && (step.Operation == "Update" || m.percent(60)):
			plain := live.DeepCopy()
			plain.SetManagedFields(nil)
			plain.SetUID("")
			sent = m.change(in, plain.Object)
			sent["apiVersion"] = step.APIVersion
		default:
			sent = m.whole(in)
		}
		if live != nil && step.Operation == "Update" {
			sent["metadata"].(map[string]any)["uid"] = "u"
		}
		step.Object = copied(sent)
		before := live
		if before == nil {
			before = &unstructured.Unstructured{Object: map[string]any{"apiVersion": step.APIVersion, "kind": k.kind}}
		}
		before = before.DeepCopy()
		before.SetAPIVersion(step.APIVersion)
		patch := &unstructured.Unstructured{Object: copied(sent).(map[string]any)}
		manager := w.manager(in, step.Subresource)
		var result runtime.Object
		var err error
		if step.Operation == "Apply" {
			result, err = manager.Apply(before, patch, step.Manager, step.Force)
		} else {
			result, err = manager.Update(before, patch, step.Manager)
		}
		if err != nil {
			step.Error, step.Code = err.Error(), 500
			var status apierrors.APIStatus
			if errors.As(err, &status) {
				step.Code = status.Status().Code
			}
		} else {
			live = result.(*unstructured.Unstructured)
			settle(live, now)
			live.SetUID("u")
			step.Result = copied(live.Object)
		}
		vector.Steps = append(vector.Steps, step)
	}
	return vector
}

// settle replaces the times of this run by the time of the step.
func settle(object *unstructured.Unstructured, now time.Time) {
	entries := object.GetManagedFields()
	for i := range entries {
		if entries[i].Time != nil && entries[i].Time.Year() != 2024 {
			entries[i].Time = &metav1.Time{Time: now}
		}
	}
	if entries != nil {
		object.SetManagedFields(entries)
	}
	data, err := json.Marshal(object.Object)
	check(err)
	check(json.Unmarshal(data, &object.Object))
}
