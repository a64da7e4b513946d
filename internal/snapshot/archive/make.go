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
		return false, denied(err)
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

// denied says what a refusal to create means. It is not remembered: the next stamp tries again,
// as a quota or a right may have changed.
func denied(err error) error {
	answer := refusal.Plain(err)
	switch code := codeOf(err); {
	case code == http.StatusForbidden && strings.Contains(err.Error(), "exceeded quota: "):
		return fmt.Errorf("%w: %w", ErrQuota, answer)
	case code == http.StatusNotFound || code == http.StatusConflict || code == http.StatusTooManyRequests:
		return answer
	case code >= http.StatusBadRequest && code < http.StatusInternalServerError:
		return fmt.Errorf("%w: %w", ErrForbidden, answer)
	}
	return answer
}

// codeOf is the status code of an answer, 0 when an error is none.
func codeOf(err error) int32 {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.Status().Code
}
