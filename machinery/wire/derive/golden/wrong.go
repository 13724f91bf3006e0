package main

import (
	"encoding/json"
	"reflect"
	"strings"

	"derive/internal/kinds"
)

// every so manieth field gets a case; all of them would be several times as much data for no new rule.
const stride = 5

var wrongs = []string{`"x"`, `7`, `1.5`, `true`, `{"a":1}`, `["a"]`, `-3000000000`, `null`, `""`, `[null]`}

// wrongTypes puts a value of another type into the fields of all types, each reached by the shortest document.
func wrongTypes(all []kinds.Kind) (out []outcome) {
	seen := map[reflect.Type]bool{}
	count := 0
	for _, k := range all {
		type place struct {
			t    reflect.Type
			wrap func(string) string
		}
		queue := []place{{k.Type, func(s string) string { return s }}}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			t, wrap := at.t, at.wrap
			for {
				outer := wrap
				if t.Kind() == reflect.Pointer {
					t = t.Elem()
				} else if t.Kind() == reflect.Slice {
					t, wrap = t.Elem(), func(s string) string { return outer("[" + s + "]") }
				} else if t.Kind() == reflect.Map {
					t, wrap = t.Elem(), func(s string) string { return outer(`{"key":` + s + "}") }
				} else {
					break
				}
			}
			if t.Kind() != reflect.Struct || seen[t] || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
				continue
			}
			seen[t] = true
			for i := range t.NumField() {
				f := t.Field(i)
				tag := strings.Split(f.Tag.Get("json"), ",")[0]
				inner := func(s string) string {
					if tag == "" {
						return wrap(s)
					}
					return wrap(`{"` + tag + `":` + s + "}")
				}
				if tag == "-" || tag == "" && !f.Anonymous {
					continue
				}
				count++
				if tag != "" && count%stride == 0 {
					out = append(out, decode(name(k), k.Type, inner(wrongs[count/stride%len(wrongs)])))
				}
				queue = append(queue, place{f.Type, inner})
			}
		}
	}
	return out
}
