package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// A request that takes long holds a worker, and others wait behind it. The API
// server is told to give up first, so that what it had to say is heard.
const (
	serverTimeout  = 10 * time.Second
	requestTimeout = serverTimeout + 2*time.Second
)

// api is what the controller asks of the API server about one workload.
type api interface {
	// get reads a workload, as the API server writes it.
	get(ctx context.Context, user workload.Ref) ([]byte, error)
	// readmit sends the empty patch and returns the object as it was stored
	// (or would be, in a dry run) and the warnings of the webhooks.
	readmit(ctx context.Context, user workload.Ref, manager string, dryRun bool) (body []byte, warnings []string, err error)
	// pods reads the pods that a selector selects.
	pods(ctx context.Context, namespace, selector string) ([]workload.Pod, error)
	// nodeReady reports whether a node is ready; one that is gone is not.
	nodeReady(ctx context.Context, name string) (bool, error)
	// sourceUID reads metadata.uid of a source, and nothing else of it.
	sourceUID(ctx context.Context, at rollout.SourceRef) (types.UID, error)
}

// restAPI has a client for each kind that is watched.
type restAPI struct {
	core rest.Interface // of pods, nodes and sources

	mu      sync.RWMutex
	clients map[*workload.Kind]rest.Interface
}

// put gives a kind its client, nil when it is watched no more.
func (a *restAPI) put(kind *workload.Kind, client rest.Interface) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if client == nil {
		delete(a.clients, kind)
	} else {
		a.clients[kind] = client
	}
}

func (a *restAPI) of(user workload.Ref) (rest.Interface, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	client, ok := a.clients[user.Kind]
	if !ok {
		return nil, apierrors.NewNotFound(user.Kind.GroupVersionResource().GroupResource(), user.Name)
	}
	return client, nil
}

func (a *restAPI) get(ctx context.Context, user workload.Ref) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, err := a.of(user)
	if err != nil {
		return nil, err
	}
	body, err := bodyOf(client.Get().Timeout(serverTimeout).Namespace(user.Namespace).Resource(user.Kind.Resource).Name(user.Name).Do(ctx))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", user, err)
	}
	return body, nil
}

func (a *restAPI) readmit(ctx context.Context, user workload.Ref, manager string, dryRun bool) ([]byte, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, err := a.of(user)
	if err != nil {
		return nil, nil, err
	}
	var heard warnings
	request := client.Patch(types.MergePatchType).
		Namespace(user.Namespace).Resource(user.Kind.Resource).Name(user.Name).
		Param("fieldManager", manager).
		Timeout(serverTimeout).
		WarningHandlerWithContext(&heard).
		Body([]byte("{}"))
	if dryRun {
		request = request.Param("dryRun", "All")
	}
	body, err := bodyOf(request.Do(ctx))
	if err != nil {
		return nil, nil, fmt.Errorf("PATCH %s: %w", user, err)
	}
	return body, heard.list(), nil
}

// refused reports whether it is certain that a patch was not stored: the API server
// said no. What it says of time or of itself leaves that open.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// denial is a refusal that does not look as if the workload were gone.
func denial(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	said := status.Status()
	said.Code, said.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	return refusal.Plain(&apierrors.StatusError{ErrStatus: said})
}

// resultOf is what came of a re-admission that failed.
func resultOf(err error) checksum.Reason {
	switch {
	case apierrors.IsNotFound(err):
		return checksum.Gone
	case optedOut(err):
		return checksum.OptedOut
	case refused(err):
		return checksum.Refused
	}
	return checksum.NoAnswer
}

// bodyOf is an answer as it came, or the API server's reason for why there is none,
// which DoRaw and Raw drop.
func bodyOf(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// warnings collects what webhooks have to say, which client-go would log.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts
}

// otherChanges names the fields, other than our annotations on the workload itself
// and the API server's own bookkeeping, in which two versions of it differ. Ours on
// the template count: a recording that changes one would roll the workload.
func otherChanges(kind *workload.Kind, before, after []byte) ([]string, error) {
	var was, is map[string]any
	if err := json.Unmarshal(before, &was); err != nil {
		return nil, fmt.Errorf("reading a %s for comparison: it is not a JSON object", kind.Name)
	}
	if err := json.Unmarshal(after, &is); err != nil {
		return nil, fmt.Errorf("reading a %s for comparison: it is not a JSON object", kind.Name)
	}
	for _, object := range []map[string]any{was, is} {
		if metadata, ok := object["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
			delete(metadata, "resourceVersion")
			delete(metadata, "generation")
			dropOurs(metadata)
		}
		// The status is not ours to compare: controllers write it all the time.
		delete(object, "status")
	}
	return differences("", was, is), nil
}

func dropOurs(metadata map[string]any) {
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return checksum.IsOursOnWorkload(key) })
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// differences lists the paths at which two values differ, in order, never the
// values themselves.
func differences(path string, was, is any) []string {
	if reflect.DeepEqual(was, is) {
		return nil
	}
	left, leftOK := was.(map[string]any)
	right, rightOK := is.(map[string]any)
	if !leftOK || !rightOK {
		return []string{strings.TrimPrefix(path, ".")}
	}
	var paths []string
	keys := slices.Collect(maps.Keys(left))
	for key := range right {
		if _, ok := left[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		paths = append(paths, differences(path+"."+key, left[key], right[key])...)
	}
	return paths
}

// The words of our ValidatingAdmissionPolicy (deploy/chart/templates/admissionpolicy.yaml),
// which holds our service account to our own annotations, where it says what stands
// around the fields, and to what is opted in.
const (
	beforeForbidden = "configstamp may change its own annotations alone, and this request would change "
	afterForbidden  = ": another mutating webhook"
	notServed       = "configstamp may change workloads that are opted in, and no others"
)

// optedOut reports whether our own policy refused a patch because the workload is not
// opted in. The API server knows of it and our watches are about to tell; or it knows
// later than they do of a Namespace that was opted in a moment ago.
func optedOut(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) && errors.As(err, &status) && strings.Contains(status.Status().Message, notServed)
}

// forbidden are the fields that our own policy refused to have changed by an
// empty patch; none when that is not what the API server said. Since we send
// nothing, it was another webhook that would have changed them.
func forbidden(err error) []string {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return nil
	}
	_, rest, _ := strings.Cut(status.Status().Message, beforeForbidden)
	fields, _, found := strings.Cut(rest, afterForbidden)
	if !found {
		return nil
	}
	return slices.DeleteFunc(strings.Split(fields, ", "), func(text string) bool { return !refusal.IsField(text) })
}

const shownFields = 4

// shown are the first of some fields, in words.
func shown(paths []string) string {
	more := ""
	if len(paths) > shownFields {
		more = fmt.Sprintf(" and %d more", len(paths)-shownFields)
		paths = paths[:shownFields]
	}
	return strings.Join(paths, ", ") + more
}

func blockedNote(paths []string) string {
	return fmt.Sprintf("checksums are not recorded: another webhook would ride along and change %s; "+
		"apply the manifest again, or restart the workload, to take its change and be stamped", shown(paths))
}

func rollBlockedNote(sources []checksum.Source, paths []string) string {
	return fmt.Sprintf("%s: not rolled out: another webhook would ride along and change %s; "+
		"apply the manifest again, or restart the workload, to take its change and roll out", changed(sources), shown(paths))
}
