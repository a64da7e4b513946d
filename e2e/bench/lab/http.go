package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Raw sends requests to the API server whose bodies are ready, so that the
// client's own work is not measured.
type Raw struct {
	client *http.Client
	server string
}

// Raw makes a client with connections of its own.
func (l *Lab) Raw() (*Raw, error) {
	client, err := rest.HTTPClientFor(rest.CopyConfig(l.Config))
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &Raw{client: client, server: l.Config.Host}, nil
}

// Do sends a request and returns the answer's body, and how long it took until
// all of it was there.
func (r *Raw) Do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", "application/json")
	begin := time.Now()
	response, err := r.client.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	took := time.Since(begin)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return answer, took, err
}
