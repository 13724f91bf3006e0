// Package kinds lists the kinds whose Go types the wire crate knows: every stable version of client-go's scheme,
// the CustomResourceDefinition types, and the options and results of meta.k8s.io.
package kinds

import (
	"reflect"
	"regexp"
	"sort"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Meta is where the types live that every group shares.
var Meta = schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}

var stable = regexp.MustCompile(`^v[0-9]+$`)

// left out: types that no client sends and that have no fixed Go form (interface fields).
var skipped = map[string]bool{"Table": true, "TableOptions": true, "InternalEvent": true}

// Kind is one kind and its Go type.
type Kind struct {
	schema.GroupVersionKind
	Type reflect.Type
}

// Scheme is client-go's scheme with the types of apiextensions.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	must(scheme.AddToScheme(s))
	must(apiextensions.AddToScheme(s))
	must(metav1.AddMetaToScheme(s))
	metav1.AddToGroupVersion(s, Meta)
	return s
}

// All returns every kind in order, and the names of the kinds that every group shares (DeleteOptions and the
// like), which are listed under Meta only.
func All() (kinds []Kind, shared []string) {
	types := Scheme().AllKnownTypes()
	metaTypes := map[string]reflect.Type{}
	for gvk, t := range types {
		if gvk.GroupVersion() == Meta && !skipped[gvk.Kind] {
			metaTypes[gvk.Kind] = t
		}
	}
	for gvk, t := range types {
		if !stable.MatchString(gvk.Version) || skipped[gvk.Kind] {
			continue
		}
		if metaTypes[gvk.Kind] == t && gvk.GroupVersion() != Meta {
			continue
		}
		kinds = append(kinds, Kind{gvk, t})
	}
	sort.Slice(kinds, func(i, j int) bool { return less(kinds[i], kinds[j]) })
	for name := range metaTypes {
		shared = append(shared, name)
	}
	sort.Strings(shared)
	return kinds, shared
}

func less(a, b Kind) bool {
	if a.Group != b.Group {
		return a.Group < b.Group
	}
	if a.Version != b.Version {
		return a.Version < b.Version
	}
	return a.Kind < b.Kind
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
