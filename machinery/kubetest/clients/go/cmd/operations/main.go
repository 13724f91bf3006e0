// Operations that Go programs do with an API server, each checked: `operations NAME` does one, `operations list` names all.
//
// The server is that of KUBECONFIG. A check that fails says what it found and exits with 1. With LOCKGATE_CLIENTS_ON_REAL
// the server is a bare kube-apiserver: what only controllers do is then not waited for.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"sort"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Nothing here takes this long on the slowest machine.
const patience = 100 * time.Second

var checks = map[string]func(*world){
	"apply":      apply,
	"conflicts":  conflicts,
	"definition": definition,
	"discovery":  discover,
	"election":   election,
	"events":     events,
	"informers":  informers,
	"lists":      lists,
	"protobuf":   protobuf,
	"reconcile":  reconcile,
	"tokens":     tokens,
	"watches":    watches,
}

// A world is a server, and a typed client of it that speaks protobuf as controllers do.
type world struct {
	ctx    context.Context
	config *rest.Config
	client *kubernetes.Clientset
	bare   bool
	asked  *requests
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: operations NAME|list")
		os.Exit(2)
	}
	if os.Args[1] == "list" {
		names := make([]string, 0, len(checks))
		for name := range checks {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Println(strings.Join(names, "\n"))
		return
	}
	check, known := checks[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "there is no check %q\n", os.Args[1])
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	config.QPS, config.Burst = -1, 0
	asked := &requests{}
	config.Wrap(asked.wrap)
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	check(&world{
		ctx:    ctx,
		config: config,
		client: kubernetes.NewForConfigOrDie(protobuf),
		bare:   os.Getenv("LOCKGATE_CLIENTS_ON_REAL") != "",
		asked:  asked,
	})
}

// What was asked of the server: method, path and query, and what the body was.
type requests struct {
	mutex sync.Mutex
	all   []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.mutex.Lock()
		line := request.Method + " " + request.URL.RequestURI() + " " + request.Header.Get("Content-Type")
		r.all = append(r.all, line)
		r.mutex.Unlock()
		return next.RoundTrip(request)
	})
}

// with gives the requests that contain all the parts.
func (r *requests) with(parts ...string) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var found []string
next:
	for _, line := range r.all {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(1)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// ok gives the value of a call that must not fail.
func ok[T any](value T, err error) T {
	must(err)
	return value
}

func equal(what string, found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		fail("%s: found %#v, expected %#v", what, found, expected)
	}
}

// refused wants an error of that kind.
func refused(what string, err error, is func(error) bool) {
	if !is(err) {
		fail("%s: %v", what, err)
	}
}

// until waits for something that must come to be.
func (w *world) until(what string, holds func() bool) {
	err := wait.PollUntilContextCancel(w.ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return holds(), nil
	})
	if err != nil {
		fail("never: %s", what)
	}
}
