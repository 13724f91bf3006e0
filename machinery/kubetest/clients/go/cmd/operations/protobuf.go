package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	definitions  = "customresourcedefinitions"
)

// An object gets another UID each time, and a Job's selector holds it.
var drawn = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

type base struct {
	API    string         `json:"api"`
	Object map[string]any `json:"object"`
}

type kase struct {
	Base   string         `json:"base"`
	Create map[string]any `json:"create"`
}

// protobuf sends objects of every built-in kind in both encodings: the server must make the same of both. The objects come
// from the directory LOCKGATE_CASES, which also holds many that are refused.
func protobuf(w *world) {
	directory := os.Getenv("LOCKGATE_CASES")
	must(apiextensionsv1.AddToScheme(scheme.Scheme))
	var bases map[string]base
	must(json.Unmarshal(ok(os.ReadFile(directory+"/bases.json")), &bases))
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "golden"}}
	must(w.rest("protobuf", "v1").Post().AbsPath("/api/v1/namespaces").Body(w.typed(namespace)).Do(w.ctx).Error())

	kinds := map[string]bool{}
	for name, base := range bases {
		typed := w.typed(base.Object)
		if typed == nil {
			fmt.Printf("%s: unknown to client-go\n", name)
			continue
		}
		w.life(name, base, typed)
		kinds[base.Object["kind"].(string)] = true
	}
	if len(kinds) < 25 {
		fail("only %d kinds were sent: %v", len(kinds), kinds)
	}

	compared := 0
	file := ok(os.Open(directory + "/cases.jsonl"))
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	for number := 1; lines.Scan(); number++ {
		var kase kase
		must(json.Unmarshal(lines.Bytes(), &kase))
		base := bases[kase.Base]
		object := merge(clone(base.Object), kase.Create)
		if meta, is := object["metadata"].(map[string]any); is && !strings.HasSuffix(base.API, definitions) {
			meta["name"] = fmt.Sprintf("case-%d", number)
		}
		typed := w.typed(object)
		if typed == nil {
			continue
		}
		byJSON, byProtobuf := w.dryRun(base.API, typed, "json"), w.dryRun(base.API, typed, "protobuf")
		if byJSON != byProtobuf {
			fail("case %d (%s):\nJSON:     %s\nprotobuf: %s", number, kase.Base, byJSON, byProtobuf)
		}
		compared++
	}
	must(lines.Err())
	if compared < 200 {
		fail("only %d cases were compared", compared)
	}
	fmt.Printf("%d kinds, %d cases\n", len(kinds), compared)
}

// life creates, reads, changes, lists and deletes an object; every body is protobuf.
func (w *world) life(name string, base base, typed runtime.Object) {
	client := w.rest("protobuf", typed.GetObjectKind().GroupVersionKind().GroupVersion().String())
	meta := typed.(metav1.Object)
	path := "/" + base.API
	if strings.HasSuffix(base.API, "reviews") {
		must(client.Post().AbsPath(path).Body(typed).Do(w.ctx).Error())
		return
	}
	if strings.HasSuffix(base.API, "webhookconfigurations") {
		// A webhook that nobody answers would refuse what comes next; the cases send these kinds, too.
		return
	}
	// The name of a definition follows from its content.
	if !strings.HasSuffix(base.API, definitions) {
		meta.SetName("by-protobuf")
	}
	created := typed.DeepCopyObject()
	if err := client.Post().AbsPath(path).Body(typed).Do(w.ctx).Into(created); err != nil {
		fail("%s: %v", name, err)
	}
	one := path + "/" + meta.GetName()
	changed := typed.DeepCopyObject()
	// The server writes some kinds, too, soon after they were made.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found := typed.DeepCopyObject()
		must(client.Get().AbsPath(one).Do(w.ctx).Into(found))
		equal(name+" as read", found.(metav1.Object).GetUID(), created.(metav1.Object).GetUID())
		found.(metav1.Object).SetLabels(map[string]string{"sent": "by-protobuf"})
		return client.Put().AbsPath(one).Body(found).Do(w.ctx).Into(changed)
	})
	if err != nil {
		fail("%s, put back: %v", name, err)
	}
	equal(name+"'s label", changed.(metav1.Object).GetLabels()["sent"], "by-protobuf")
	raw := ok(client.Get().AbsPath(path).Param("labelSelector", "sent=by-protobuf").Do(w.ctx).Raw())
	if !bytes.Contains(raw, []byte(meta.GetName())) {
		fail("%s: not in the list", name)
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(created.(metav1.Object).GetUID()))
	must(client.Delete().AbsPath(one).Body(options).Do(w.ctx).Error())
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if len(w.asked.with(method, base.API, protobufType)) == 0 {
			fail("%s: %s was not sent as protobuf", name, method)
		}
	}
}

// dryRun gives what the server would make of an object, or why it refuses it.
func (w *world) dryRun(path string, object runtime.Object, encoding string) string {
	client := w.rest(encoding, object.GetObjectKind().GroupVersionKind().GroupVersion().String())
	// The answers are to be compared.
	raw, err := client.Post().AbsPath("/"+path).Param("dryRun", "All").SetHeader("Accept", "application/json").Body(object).Do(w.ctx).Raw()
	var answer map[string]any
	if len(raw) == 0 || json.Unmarshal(raw, &answer) != nil {
		return fmt.Sprintf("%v", err)
	}
	var status metav1.Status
	if answer["kind"] == "Status" && json.Unmarshal(raw, &status) == nil && status.Details != nil {
		// Several mistakes are named in any order.
		var causes []string
		for _, cause := range status.Details.Causes {
			causes = append(causes, cause.Field+": "+cause.Message)
		}
		slices.Sort(causes)
		return drawn.ReplaceAllString(fmt.Sprintf("%d %s %v", status.Code, status.Reason, causes), "UID")
	}
	if meta, is := answer["metadata"].(map[string]any); is {
		delete(meta, "uid")
		delete(meta, "creationTimestamp")
		delete(meta, "managedFields")
	}
	// Addresses and ports are drawn at random.
	if spec, is := answer["spec"].(map[string]any); is && answer["kind"] == "Service" {
		for _, field := range []string{"clusterIP", "clusterIPs", "ports", "healthCheckNodePort"} {
			delete(spec, field)
		}
	}
	return drawn.ReplaceAllString(string(ok(json.Marshal(answer))), "UID")
}

// rest gives a client of a group and version that writes in one encoding.
func (w *world) rest(encoding, groupVersion string) *rest.RESTClient {
	config := rest.CopyConfig(w.config)
	version := ok(schema.ParseGroupVersion(groupVersion))
	config.GroupVersion, config.NegotiatedSerializer = &version, scheme.Codecs.WithoutConversion()
	config.APIPath = "/"
	config.ContentType = "application/json"
	if encoding == "protobuf" {
		config.ContentType = protobufType
		config.AcceptContentTypes = protobufType + ",application/json"
	}
	return ok(rest.RESTClientFor(config))
}

// typed gives the Go object that has this content, if there is one.
func (w *world) typed(object map[string]any) runtime.Object {
	typed, kind, err := scheme.Codecs.UniversalDeserializer().Decode(ok(json.Marshal(object)), nil, nil)
	if err != nil {
		return nil
	}
	typed.GetObjectKind().SetGroupVersionKind(*kind)
	return typed
}

func clone(object map[string]any) map[string]any {
	var copied map[string]any
	must(json.Unmarshal(ok(json.Marshal(object)), &copied))
	return copied
}

// merge applies a JSON merge patch.
func merge(target, patch map[string]any) map[string]any {
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			inner, is := target[key].(map[string]any)
			if !is {
				inner = map[string]any{}
			}
			target[key] = merge(inner, value)
		default:
			target[key] = value
		}
	}
	return target
}
