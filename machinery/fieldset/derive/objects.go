package main

import (
	"fmt"
	"math/rand"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// maker makes up values that mostly fit their schemas.
type maker struct {
	*rand.Rand
	models map[string]*spec.Schema
	// nulls and empty containers, in percent.
	odd int
	// duplicates in lists of unique elements, in percent.
	twice int
}

func (m maker) percent(p int) bool { return m.Intn(100) < p }

func (m maker) word() string { return string(rune('a' + m.Intn(3))) }

func (m maker) resolve(s *spec.Schema) *spec.Schema {
	ref := s.Ref.String()
	if ref == "" && len(s.AllOf) == 1 {
		ref = s.AllOf[0].Ref.String()
	}
	if ref == "" {
		return s
	}
	return m.models[ref[strings.LastIndex(ref, "/")+1:]]
}

func (m maker) value(s *spec.Schema, depth int) any {
	s = m.resolve(s)
	if m.percent(m.odd) {
		return nil
	}
	kind := ""
	if len(s.Type) > 0 {
		kind = s.Type[0]
	}
	switch kind {
	case "integer":
		return int64(m.Intn(3))
	case "number":
		return float64(m.Intn(3)) / 2
	case "boolean":
		return m.percent(50)
	case "string":
		return m.word()
	case "array":
		return m.list(s, depth)
	case "object":
		return m.object(s, depth)
	}
	if len(s.OneOf) > 0 {
		return m.word()
	}
	return m.anything(3)
}

func (m maker) anything(depth int) any {
	switch m.Intn(6) {
	case 0:
		return nil
	case 1:
		return int64(m.Intn(3))
	case 2, 3:
		if depth > 0 {
			object := map[string]any{}
			for i := m.Intn(3); i > 0; i-- {
				object[m.word()] = m.anything(depth - 1)
			}
			return object
		}
	case 4:
		if depth > 0 {
			list := []any{}
			for i := m.Intn(3); i > 0; i-- {
				list = append(list, m.anything(depth-1))
			}
			return list
		}
	}
	return m.word()
}

func (m maker) list(s *spec.Schema, depth int) any {
	list := []any{}
	seen := map[string]bool{}
	unique, _ := s.Extensions.GetString("x-kubernetes-list-type")
	keys, _ := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	for i := m.Intn(4); i > 0 && depth > 0; i-- {
		item := m.value(s.Items.Schema, depth-1)
		name := fmt.Sprint(item)
		if unique == "map" {
			object, ok := item.(map[string]any)
			if !ok {
				continue
			}
			name = ""
			for _, key := range keys {
				property := m.resolve(m.property(s.Items.Schema, key))
				if property.Default == nil && object[key] == nil || m.percent(60) {
					object[key] = maker{m.Rand, m.models, 0, 0}.value(property, 0)
				}
				value, ok := object[key]
				if !ok {
					value = property.Default
				}
				name += fmt.Sprint(value) + "/"
			}
		}
		if (unique == "map" || unique == "set") && (item == nil || seen[name] && !m.percent(m.twice)) {
			continue
		}
		seen[name] = true
		list = append(list, item)
	}
	return list
}

func (m maker) property(s *spec.Schema, name string) *spec.Schema {
	property := m.resolve(s).Properties[name]
	return &property
}

func (m maker) object(s *spec.Schema, depth int) any {
	object := map[string]any{}
	if depth <= 0 || m.percent(m.odd) {
		return object
	}
	if names := sortedKeys(s.Properties); len(names) > 0 {
		for i := 1 + m.Intn(3); i > 0; i-- {
			name := names[m.Intn(len(names))]
			property := s.Properties[name]
			object[name] = m.value(&property, depth-1)
		}
	}
	open, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields")
	switch {
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		for i := m.Intn(3); i > 0; i-- {
			object[m.word()] = m.value(s.AdditionalProperties.Schema, depth-1)
		}
	case open || len(s.Properties) == 0:
		for i := m.Intn(3); i > 0; i-- {
			object[m.word()] = m.anything(2)
		}
	}
	return object
}

// whole makes up an object of a kind.
func (m maker) whole(k kind) map[string]any {
	root := m.models[k.model]
	object := map[string]any{"apiVersion": k.apiVersion(), "kind": k.kind}
	for _, name := range sortedKeys(root.Properties) {
		switch name {
		case "apiVersion", "kind":
		case "metadata":
			object[name] = m.metadata()
		default:
			property := root.Properties[name]
			if m.percent(75) {
				object[name] = m.value(&property, 7)
			}
		}
	}
	return object
}

func (m maker) metadata() map[string]any {
	metadata := map[string]any{"name": "x", "namespace": "ns"}
	for _, name := range []string{"labels", "annotations"} {
		if m.percent(30) {
			metadata[name] = map[string]any{m.word(): m.word()}
		}
	}
	if m.percent(20) {
		metadata["finalizers"] = []any{m.word() + "/1", m.word() + "/2"}
	}
	if m.percent(10) {
		metadata["ownerReferences"] = []any{map[string]any{"uid": m.word(), "name": m.word(), "kind": "K", "apiVersion": "v1"}}
	}
	return metadata
}

// change makes up an object that has much of another one.
func (m maker) change(k kind, from map[string]any) map[string]any {
	other := m.whole(k)
	out := m.mix(from, other, 4).(map[string]any)
	out["metadata"].(map[string]any)["name"] = "x"
	return out
}

func (m maker) mix(a, b any, depth int) any {
	left, ok := a.(map[string]any)
	right, ok2 := b.(map[string]any)
	if !ok || !ok2 || depth == 0 {
		if m.percent(50) {
			return b
		}
		return a
	}
	out := map[string]any{}
	for _, name := range sortedKeys(left) {
		value := left[name]
		if other, ok := right[name]; ok {
			out[name] = m.mix(value, other, depth-1)
		} else if m.percent(85) || name == "metadata" || name == "apiVersion" || name == "kind" {
			out[name] = value
		}
	}
	for _, name := range sortedKeys(right) {
		if _, ok := left[name]; !ok && m.percent(40) {
			out[name] = right[name]
		}
	}
	return out
}
