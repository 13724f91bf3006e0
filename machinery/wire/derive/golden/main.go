// Command golden writes what Go makes of many inputs, for the wire crate's tests to compare with:
//
//	json.jsonl     documents, and what comes of decoding and encoding them: the outcome, unknown fields, or the error
//	errors.jsonl   the same for documents with one wrong type each, made from the types
//	proto.jsonl    objects in protobuf beside their JSON; together they set every field of every kind
//
// The only argument is the directory to write to.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	kjson "sigs.k8s.io/json"

	"derive/internal/kinds"
)

// outcome is one line of json.jsonl and errors.jsonl.
type outcome struct {
	Kind    string          `json:"kind"`
	In      json.RawMessage `json:"in"`
	Out     json.RawMessage `json:"out,omitempty"`
	Unknown []string        `json:"unknown,omitempty"`
	Err     string          `json:"err,omitempty"`
}

// pair is one line of proto.jsonl.
type pair struct {
	Kind  string          `json:"kind"`
	Proto []byte          `json:"proto"`
	JSON  json.RawMessage `json:"json"`
	// What comes of JSON when it is decoded and encoded once more, if that is not the same.
	Again json.RawMessage `json:"again,omitempty"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// decode does what the JSON serializer does with a body, once it knows the type.
func decode(kind string, t reflect.Type, in string) outcome {
	var compact bytes.Buffer
	check(json.Compact(&compact, []byte(in)))
	one := outcome{Kind: kind, In: compact.Bytes()}
	object := reflect.New(t).Interface()
	strict, err := kjson.UnmarshalStrict([]byte(in), object)
	if err != nil {
		one.Err = err.Error()
		return one
	}
	for _, e := range strict {
		one.Unknown = append(one.Unknown, e.(kjson.FieldError).FieldPath())
	}
	one.Out, err = json.Marshal(object)
	check(err)
	return one
}

func name(k kinds.Kind) string {
	return k.Group + "/" + k.Version + "/" + k.Kind
}

func write[T any](path string, lines []T) {
	file, err := os.Create(path)
	check(err)
	w := bufio.NewWriter(file)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, line := range lines {
		check(encoder.Encode(line))
	}
	check(w.Flush())
	check(file.Close())
}

func main() {
	all, _ := kinds.All()
	byName := map[string]kinds.Kind{}
	for _, k := range all {
		byName[name(k)] = k
	}
	dir := os.Args[1]

	var documents []outcome
	for _, in := range headers {
		documents = append(documents, interpret(in))
	}
	for _, c := range cases {
		k, ok := byName[c.kind]
		if !ok {
			check(fmt.Errorf("no such kind: %s", c.kind))
		}
		documents = append(documents, decode(c.kind, k.Type, c.in))
	}
	write(filepath.Join(dir, "json.jsonl"), documents)
	write(filepath.Join(dir, "errors.jsonl"), wrongTypes(all))

	codec := protobuf.NewSerializer(nil, nil)
	var pairs []pair
	for _, object := range append(samples(byName), filled(all)...) {
		if object.GetObjectKind().GroupVersionKind().Empty() {
			continue // a WatchEvent does not say what it is
		}
		var buffer bytes.Buffer
		if err := codec.Encode(object, &buffer); err != nil {
			if strings.Contains(err.Error(), "does not implement the protobuf marshalling interface") {
				continue
			}
			check(err)
		}
		text, err := json.Marshal(reread(object, buffer.Bytes()))
		check(err)
		gvk := object.GetObjectKind().GroupVersionKind()
		kind := name(kinds.Kind{GroupVersionKind: gvk})
		one := pair{Kind: kind, Proto: buffer.Bytes(), JSON: text}
		if again := decode(kind, byName[kind].Type, string(text)).Out; !bytes.Equal(again, text) {
			one.Again = again
		}
		pairs = append(pairs, one)
	}
	write(filepath.Join(dir, "proto.jsonl"), pairs)
}

// samples are the documents of cases.go that decode without complaint.
func samples(byName map[string]kinds.Kind) (out []runtime.Object) {
	for _, c := range cases {
		k := byName[c.kind]
		object, ok := reflect.New(k.Type).Interface().(runtime.Object)
		if !ok {
			continue
		}
		if strict, err := kjson.UnmarshalStrict([]byte(c.in), object); err != nil || len(strict) > 0 {
			continue
		}
		object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
		out = append(out, object)
	}
	return out
}

// reread decodes what was encoded: protobuf cannot tell an empty list from none, so this is what a server sees.
func reread(like runtime.Object, data []byte) runtime.Object {
	envelope := runtime.Unknown{}
	check(envelope.Unmarshal(data[len("k8s\x00"):]))
	object := reflect.New(reflect.TypeOf(like).Elem()).Interface().(runtime.Object)
	check(object.(interface{ Unmarshal([]byte) error }).Unmarshal(envelope.Raw))
	object.GetObjectKind().SetGroupVersionKind(like.GetObjectKind().GroupVersionKind())
	return object
}

// interpret is how the server finds the kind of a document before it knows the type.
func interpret(in string) outcome {
	one := outcome{In: json.RawMessage(in)}
	gvk, err := kserializer.DefaultMetaFactory.Interpret([]byte(in))
	if err != nil {
		one.Err = err.Error()
		return one
	}
	one.Out, err = json.Marshal([]string{gvk.Group, gvk.Version, gvk.Kind})
	check(err)
	return one
}
