package archive

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/snapshot"
)

// write makes a snapshot of a source, if the source holds what the name stands for. Else the
// snapshot may be there all the same, and memory late.
func (a *Archive) write(ctx context.Context, ring *checksum.Ring, namespace string, of checksum.Source, name string) (made bool, err error) {
	if err := a.refusedIn(namespace); err != nil {
		return false, err
	}
	cm, err := a.client(namespace).Get(ctx, of.Name)
	if err != nil && !isAbsent(err) {
		return false, refusal.Plain(err)
	}
	if err != nil || !ring.NamesSnapshot(namespace, of, checksum.ContentOfConfigMap(cm), name) {
		return false, a.stored(ctx, ring, namespace, of, name)
	}
	stored, err := a.client(namespace).Create(ctx, snapshot.Of(cm, name, a.options.Clock.Now()))
	if apierrors.IsAlreadyExists(err) {
		return false, a.stored(ctx, ring, namespace, of, name)
	}
	if err != nil {
		return false, a.denied(namespace, err)
	}
	found, is := snapshot.From(stored)
	if !is || ours(ring, &found, of) != nil { // somebody's admission has changed it
		return false, ErrForeign
	}
	a.remember(namespace, name, &found, recentFor)
	return true, nil
}

// stored is nil when a snapshot is there and ours, whatever memory knows.
func (a *Archive) stored(ctx context.Context, ring *checksum.Ring, namespace string, of checksum.Source, name string) error {
	found, err := a.look(ctx, namespace, name)
	if err != nil {
		return err
	}
	if found == nil {
		return ErrChanged
	}
	return ours(ring, found, of)
}

// denied says what a refusal to create means. Where it would be repeated, nothing is asked
// for a while.
func (a *Archive) denied(namespace string, err error) error {
	answer := refusal.Plain(err)
	var why error
	switch code := codeOf(err); {
	case code == http.StatusForbidden && strings.Contains(err.Error(), "exceeded quota: "):
		why = ErrQuota
	case code == http.StatusNotFound || code == http.StatusConflict || code == http.StatusTooManyRequests:
		return answer
	case code >= http.StatusBadRequest && code < http.StatusInternalServerError:
		why = ErrForbidden
	default:
		return answer
	}
	why = fmt.Errorf("%w: %w", why, answer)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused[namespace] = refused{why, a.options.Clock.Now().Add(refusedFor)}
	return why
}

// codeOf is the status code of an answer, 0 when an error is none.
func codeOf(err error) int32 {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.Status().Code
}

// refusedIn is why nothing is made in a namespace now, nil when it may be tried.
func (a *Archive) refusedIn(namespace string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, ok := a.refused[namespace]
	if ok && a.options.Clock.Now().Before(last.until) {
		return last.why
	}
	delete(a.refused, namespace)
	return nil
}
