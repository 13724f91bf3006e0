package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"derive/internal/kinds"
)

const maxDepth = 14

// filler sets fields by a fixed sequence of chance: each field of each struct surely the first times it is met,
// then seldom, so that the whole stays small.
type filler struct {
	chance *rand.Rand
	seen   map[string]int
}

func filled(all []kinds.Kind) (out []runtime.Object) {
	f := &filler{rand.New(rand.NewSource(35)), map[string]int{}}
	for _, k := range all {
		object, ok := reflect.New(k.Type).Interface().(runtime.Object)
		if !ok {
			continue
		}
		f.fill(reflect.ValueOf(object).Elem(), 0)
		object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
		out = append(out, object)
		f.demand(k.Type, map[reflect.Type]bool{})
	}
	return out
}

// demand fails if a field that the type can reach was never set.
func (f *filler) demand(t reflect.Type, visited map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || visited[t] || f.special(reflect.New(t).Elem()) {
		return
	}
	visited[t] = true
	for i := range t.NumField() {
		field := t.Field(i)
		if !settable(field) {
			continue
		}
		if f.seen[key(t, field)] == 0 {
			check(fmt.Errorf("%v.%s is never set", t, field.Name))
		}
		f.demand(field.Type, visited)
	}
}

func key(t reflect.Type, field reflect.StructField) string {
	return t.PkgPath() + t.Name() + "." + field.Name
}

func settable(field reflect.StructField) bool {
	if field.Tag.Get("protobuf") == "" && !field.Anonymous || field.Tag.Get("json") == "-" {
		return false
	}
	return field.Type != reflect.TypeFor[metav1.TypeMeta]()
}

func (f *filler) fill(v reflect.Value, depth int) {
	if f.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			bytes := make([]byte, f.chance.Intn(6))
			f.chance.Read(bytes)
			v.SetBytes(bytes)
			return
		}
		n := 1 + f.chance.Intn(2)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + f.chance.Intn(2) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(f.word())
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		f.fields(v, depth)
	case reflect.String:
		v.SetString(f.word())
	case reflect.Bool:
		v.SetBool(f.chance.Intn(3) > 0)
	case reflect.Int32:
		v.SetInt(int64(int32(f.chance.Uint32()) >> f.chance.Intn(32)))
	case reflect.Int64:
		v.SetInt(int64(f.chance.Uint64()) >> f.chance.Intn(64))
	case reflect.Float64:
		v.SetFloat(float64(f.chance.Intn(2000)-1000) / 8)
	default:
		panic(v.Type().String())
	}
}

func (f *filler) fields(v reflect.Value, depth int) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !settable(field) {
			continue
		}
		key := key(v.Type(), field)
		if depth > maxDepth || f.seen[key] > 1 && f.chance.Intn(12) > 0 {
			continue
		}
		f.seen[key]++
		f.fill(v.Field(i), depth+1)
	}
}

func (f *filler) special(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = metav1.Time{Time: time.Unix(f.chance.Int63n(4e9)-1e9, 0)}
	case *metav1.MicroTime:
		*p = metav1.MicroTime{Time: time.UnixMicro(f.chance.Int63n(4e15))}
	case *resource.Quantity:
		*p = resource.MustParse([]string{"0", "1", "500m", "128Mi", "1.5Gi", "2k", "1e3", "0.1"}[f.chance.Intn(8)])
	case *intstr.IntOrString:
		*p = []intstr.IntOrString{intstr.FromInt32(f.chance.Int31()), intstr.FromString("25%")}[f.chance.Intn(2)]
	case *runtime.RawExtension:
		p.Raw = []byte(`{"apiVersion":"v1","kind":"X","n":[1,null,"a"]}`)
	case *metav1.FieldsV1:
		p.Raw = []byte(`{"f:metadata":{"f:labels":{".":{}}}}`)
	case *apiextensions.JSON:
		p.Raw = []byte([]string{`"x"`, `1`, `{"a":null}`, `[true]`}[f.chance.Intn(4)])
	default:
		return f.schema(v.Addr().Interface())
	}
	return true
}

func (f *filler) schema(at any) bool {
	schema := &apiextensions.JSONSchemaProps{Type: f.word(), Nullable: true}
	choice := f.chance.Intn(3)
	switch p := at.(type) {
	case *apiextensions.JSONSchemaPropsOrArray:
		p.Schema = schema
		if choice == 0 {
			*p = apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{*schema, {}}}
		}
	case *apiextensions.JSONSchemaPropsOrBool:
		p.Allows = choice > 0
		if choice > 1 {
			p.Schema = schema
		}
	case *apiextensions.JSONSchemaPropsOrStringArray:
		p.Schema = schema
		if choice == 0 {
			*p = apiextensions.JSONSchemaPropsOrStringArray{Property: []string{f.word(), f.word()}}
		}
	default:
		return false
	}
	return true
}

func (f *filler) word() string {
	if f.chance.Intn(40) == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s%d", []string{"a", "b-", "ü", "x/y."}[f.chance.Intn(4)], f.chance.Intn(100)))
}
