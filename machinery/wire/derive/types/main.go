// Command types prints the table of Go types that the wire crate decodes by. It reads the types alone, by
// reflection, and refuses whatever the crate has no rule for, so that a new release cannot slip by.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"derive/internal/kinds"
)

// special are the types with a JSON form of their own; each letter is a rule of the crate.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():                                "T",
	reflect.TypeFor[metav1.MicroTime]():                           "M",
	reflect.TypeFor[metav1.FieldsV1]():                            "F",
	reflect.TypeFor[resource.Quantity]():                          "Q",
	reflect.TypeFor[intstr.IntOrString]():                         "I",
	reflect.TypeFor[runtime.RawExtension]():                       "R",
	reflect.TypeFor[apiextensions.JSON]():                         "J",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "A",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "B",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "S",
}

var scalars = map[reflect.Kind]string{
	reflect.Bool: "bool", reflect.String: "string", reflect.Int32: "int32", reflect.Int64: "int64",
	reflect.Float64: "float64",
}

const (
	omitEmpty = 1
	omitZero  = 2
	inline    = 4
)

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
	protoMessage  = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
)

type field struct {
	name  string
	typ   int
	flags int
	proto int
}

type node struct {
	kind, name string
	elem       int
	fields     []field
}

type table struct {
	index map[reflect.Type]int
	nodes []*node
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// add gives the number of a type, and notes it and all it refers to.
func (t *table) add(typ reflect.Type) int {
	if i, ok := t.index[typ]; ok {
		return i
	}
	i := len(t.nodes)
	n := &node{}
	t.index[typ] = i
	t.nodes = append(t.nodes, n)
	n.name = typ.String()

	if letter, ok := special[typ]; ok {
		n.kind = letter
		n.fields = t.protoFields(typ)
		return i
	}
	if custom(typ) {
		fail("%v has a JSON form of its own that the crate does not know", typ)
	}
	switch typ.Kind() {
	case reflect.Pointer:
		n.kind, n.name, n.elem = "*", "", t.add(typ.Elem())
	case reflect.Slice:
		switch {
		case typ.Elem().Kind() == reflect.Uint8:
			n.kind = "bytes"
		case reflect.PointerTo(typ).Implements(protoMessage):
			n.kind, n.elem = "[m", t.add(typ.Elem()) // a message with the items in field 1
		default:
			n.kind, n.elem = "[", t.add(typ.Elem())
		}
	case reflect.Map:
		if typ.Key().Kind() != reflect.String {
			fail("%v: a map whose keys are not strings", typ)
		}
		n.kind, n.elem = "map", t.add(typ.Elem())
	case reflect.Struct:
		n.kind, n.fields = "{", t.jsonFields(typ)
		t.checkNames(typ)
	default:
		scalar, ok := scalars[typ.Kind()]
		if !ok {
			fail("%v: no rule for kind %v", typ, typ.Kind())
		}
		n.kind = scalar
	}
	return i
}

func custom(typ reflect.Type) bool {
	if typ.Kind() == reflect.Pointer {
		return false
	}
	p := reflect.PointerTo(typ)
	return p.Implements(marshaler) || p.Implements(unmarshaler) || p.Implements(textMarshaler)
}

func (t *table) jsonFields(typ reflect.Type) []field {
	var out []field
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		if tag == "-" {
			continue
		}
		if !f.IsExported() {
			fail("%v.%s: unexported", typ, f.Name)
		}
		parts := strings.Split(tag, ",")
		one := field{name: parts[0], proto: number(typ, f)}
		for _, option := range parts[1:] {
			switch option {
			case "omitempty":
				one.flags |= omitEmpty
			case "omitzero":
				one.flags |= omitZero
				if special[f.Type] != "T" && special[f.Type] != "M" {
					fail("%v.%s: omitzero on something else than a time", typ, f.Name)
				}
			case "inline", "":
			default:
				fail("%v.%s: json option %q", typ, f.Name, option)
			}
		}
		if one.name == "" {
			if !f.Anonymous || f.Type.Kind() != reflect.Struct {
				if tagged && strings.Contains(tag, "inline") {
					fail("%v.%s: inline but not embedded", typ, f.Name)
				}
			} else {
				one.flags |= inline
			}
			one.name = f.Name
		}
		one.typ = t.add(f.Type)
		out = append(out, one)
	}
	return out
}

// protoFields lists what protobuf alone sees of a special type.
func (t *table) protoFields(typ reflect.Type) []field {
	var out []field
	for i := range typ.NumField() {
		f := typ.Field(i)
		if n := number(typ, f); n != 0 {
			out = append(out, field{name: f.Name, typ: t.add(f.Type), proto: n})
		}
	}
	return out
}

// checkNames refuses JSON names that appear twice once embedded structs are inlined.
func (t *table) checkNames(typ reflect.Type) {
	seen := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := strings.Split(f.Tag.Get("json"), ",")[0]
			switch {
			case name == "-":
			case name == "" && f.Anonymous:
				walk(f.Type)
			case seen[name]:
				fail("%v: %s twice", typ, name)
			default:
				seen[name] = true
			}
		}
	}
	walk(typ)
}

// number is the protobuf number of a field, 0 for none. The tag's wire type is not read: some tags are wrong
// (ListMeta.remainingItemCount), while the generated code always follows the Go type.
func number(typ reflect.Type, f reflect.StructField) int {
	tag := f.Tag.Get("protobuf")
	if tag == "" || tag == "-" {
		return 0
	}
	parts := strings.Split(tag, ",")
	if len(parts) < 3 {
		fail("%v.%s: protobuf tag %q", typ, f.Name, tag)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		fail("%v.%s: %v", typ, f.Name, err)
	}
	return n
}

func main() {
	t := &table{index: map[reflect.Type]int{}}
	all, shared := kinds.All()
	for _, k := range all {
		t.add(k.Type)
	}
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	fmt.Fprintf(w, "{\"shared\":%s,\n\"kinds\":[", quoted(shared))
	for i, k := range all {
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(w, "\n[%q,%q,%q,%d]", k.Group, k.Version, k.Kind, t.index[k.Type])
	}
	w.WriteString("],\n\"types\":[")
	for i, n := range t.nodes {
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(w, "\n[%q,%q,%d,[", n.kind, n.name, n.elem)
		for j, f := range n.fields {
			if j > 0 {
				w.WriteByte(',')
			}
			fmt.Fprintf(w, "[%q,%d,%d,%d]", f.name, f.typ, f.flags, f.proto)
		}
		w.WriteString("]]")
	}
	w.WriteString("]}\n")
}

func quoted(names []string) string {
	out, err := json.Marshal(names)
	if err != nil {
		fail("%v", err)
	}
	return string(out)
}
