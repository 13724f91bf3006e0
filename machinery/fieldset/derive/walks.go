package main

import (
	"bytes"
	"encoding/json"
	"math/rand"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// walkVector is two objects of a kind, and what the walks make of them.
type walkVector struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Left       any             `json:"left"`
	Right      any             `json:"right"`
	LeftError  string          `json:"leftError,omitempty"`
	RightError string          `json:"rightError,omitempty"`
	LeftSet    json.RawMessage `json:"leftSet,omitempty"`
	RightSet   json.RawMessage `json:"rightSet,omitempty"`
	Removed    json.RawMessage `json:"removed,omitempty"`
	Modified   json.RawMessage `json:"modified,omitempty"`
	Added      json.RawMessage `json:"added,omitempty"`
	Merged     any             `json:"merged,omitempty"`
	Without    any             `json:"without,omitempty"`
}

func (w *world) walk(random *rand.Rand, k kind) walkVector {
	m := maker{random, w.models, 6, 25}
	left := m.whole(k)
	// What is applied has no duplicates.
	m.twice = 2
	var right map[string]any
	if m.percent(50) {
		right = m.whole(k)
	} else {
		right = m.change(k, left)
	}
	out := walkVector{APIVersion: k.apiVersion(), Kind: k.kind, Left: copied(left), Right: copied(right)}
	parse := w.parser.Type(k.model)
	a, err := parse.FromUnstructured(left, typed.AllowDuplicates)
	if err != nil {
		out.LeftError = err.Error()
	}
	b, err2 := parse.FromUnstructured(right)
	if err2 != nil {
		out.RightError = err2.Error()
	}
	if err != nil || err2 != nil {
		return out
	}
	out.LeftSet, out.RightSet = encoded(fields(a)), encoded(fields(b))
	comparison, err := a.Compare(b)
	check(err)
	out.Removed, out.Modified, out.Added = encoded(comparison.Removed), encoded(comparison.Modified), encoded(comparison.Added)
	merged, err := a.Merge(b)
	check(err)
	out.Merged = copied(merged.AsValue().Unstructured())
	out.Without = copied(a.RemoveItems(fields(b)).AsValue().Unstructured())
	return out
}

func fields(v *typed.TypedValue) *fieldpath.Set {
	set, err := v.ToFieldSet()
	check(err)
	return set
}

func encoded(set *fieldpath.Set) json.RawMessage {
	data, err := set.ToJSON()
	check(err)
	return bytes.TrimSpace(data)
}

func copied(v any) any {
	data, err := json.Marshal(v)
	check(err)
	var out any
	check(json.Unmarshal(data, &out))
	return out
}
