// Command derive makes test vectors for field ownership: random objects and sequences of writes, and what the field
// manager that kube-apiserver uses makes of them.
//
//	derive -openapi FILE -script FILE -walks FILE -writes FILE [-seed N]
//
// The schemas are those of built-in kinds (-openapi) and of the custom resource that a recorded script defines (-script).
// Everything random comes from a seed, so that the same versions give the same files.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"os"
	"sort"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// A kind whose objects are made up.
type kind struct {
	group, version, kind string
	model                string
	walks, sequences     int
}

var kinds = []kind{
	{"golden.test", "v1", "Gadget", "gadget.v1", 140, 36},
	{"", "v1", "ConfigMap", "io.k8s.api.core.v1.ConfigMap", 10, 8},
	{"", "v1", "Pod", "io.k8s.api.core.v1.Pod", 40, 8},
	{"", "v1", "Service", "io.k8s.api.core.v1.Service", 20, 6},
	{"", "v1", "Node", "io.k8s.api.core.v1.Node", 15, 4},
	{"apps", "v1", "Deployment", "io.k8s.api.apps.v1.Deployment", 40, 12},
	{"apps", "v1", "ControllerRevision", "io.k8s.api.apps.v1.ControllerRevision", 10, 3},
	{"networking.k8s.io", "v1", "Ingress", "io.k8s.api.networking.v1.Ingress", 10, 3},
	{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", 10, 3},
}

type world struct {
	models    map[string]*spec.Schema
	parser    typed.Parser
	converter managedfields.TypeConverter
}

func (k kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

func main() {
	openapi := flag.String("openapi", "", "components of the OpenAPI document")
	script := flag.String("script", "", "recorded script with the definition of a custom resource")
	walks := flag.String("walks", "", "where the vectors of walks go")
	writes := flag.String("writes", "", "where the vectors of writes go")
	seed := flag.Int64("seed", 1, "what is random comes from this")
	flag.Parse()

	w := load(*openapi, *script)
	random := rand.New(rand.NewSource(*seed))
	var walkVectors, writeVectors []any
	for _, k := range kinds {
		for i := 0; i < k.walks; i++ {
			walkVectors = append(walkVectors, w.walk(random, k))
		}
		for i := 0; i < k.sequences; i++ {
			writeVectors = append(writeVectors, w.sequence(random, k))
		}
	}
	save(*walks, walkVectors)
	save(*writes, writeVectors)
}

func load(openapi, script string) *world {
	var document struct {
		Schemas map[string]*spec.Schema `json:"schemas"`
	}
	read(openapi, &document)
	var recorded struct {
		Definition struct {
			Spec struct {
				Versions []struct {
					Name   string `json:"name"`
					Schema struct {
						OpenAPI *spec.Schema `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		} `json:"definition"`
	}
	read(script, &recorded)
	models := document.Schemas
	for _, version := range recorded.Definition.Spec.Versions {
		root := version.Schema.OpenAPI
		whole(root)
		embedded(root)
		root.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
			"group": "golden.test", "version": version.Name, "kind": "Gadget",
		}})
		models["gadget."+version.Name] = root
	}
	types, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	check(err)
	converter, err := managedfields.NewTypeConverter(models, false)
	check(err)
	return &world{models, typed.Parser{Schema: schema.Schema{Types: types.Types}}, converter}
}

// whole gives a schema what every object has.
func whole(s *spec.Schema) {
	s.SetProperty("apiVersion", *spec.StringProperty())
	s.SetProperty("kind", *spec.StringProperty())
	s.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMeta))
}

func embedded(s *spec.Schema) {
	for name, property := range s.Properties {
		embedded(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		embedded(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		embedded(s.AdditionalProperties.Schema)
	}
	if is, ok := s.Extensions.GetBool("x-kubernetes-embedded-resource"); ok && is {
		whole(s)
	}
}

func read(path string, into any) {
	data, err := os.ReadFile(path)
	check(err)
	check(json.Unmarshal(data, into))
}

func save(path string, vectors []any) {
	out, err := os.Create(path)
	check(err)
	defer out.Close()
	for i, vector := range vectors {
		data, err := json.Marshal(vector)
		check(err)
		before := ",\n"
		if i == 0 {
			before = "[\n"
		}
		fmt.Fprintf(out, "%s%s", before, data)
	}
	fmt.Fprintln(out, "\n]")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
