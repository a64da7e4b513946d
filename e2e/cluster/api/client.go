// Package api asks a cluster's servers the few things that bringing it up needs. It is plain HTTP and not client-go, so
// that the command compiles in seconds.
package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	requestTimeout = 5 * time.Second
	maximumAnswer  = 16 << 20
)

// Client asks servers that the cluster's authority vouches for.
type Client struct {
	server string
	http   *http.Client
}

// StatusError is an answer other than success.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.Code, e.Text) }

// New makes a client of the API server at server, for the user of the given certificate.
func New(server, authority, certificate, key string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	content, err := os.ReadFile(authority)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(content)
	return &Client{server: server, http: &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			// No proxy: these servers are on this machine.
			Proxy:             nil,
			TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots},
			ForceAttemptHTTP2: true,
		},
	}}, nil
}

// Close gives up the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get reads one path of the API server; into may be nil.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, c.server+path, nil, into)
}

// Create posts an object to a collection of the API server.
func (c *Client) Create(ctx context.Context, path string, object any) error {
	content, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("writing an object for %s: %w", path, err)
	}
	return c.do(ctx, http.MethodPost, c.server+path, content, nil)
}

// Healthy asks any URL of the cluster's servers and wants success.
func (c *Client) Healthy(ctx context.Context, url string) error {
	return c.do(ctx, http.MethodGet, url, nil, nil)
}

func (c *Client) do(ctx context.Context, method, url string, content []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("asking the cluster: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maximumAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("asking %s: %w", url, &StatusError{response.StatusCode, excerpt(string(answer))})
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	return nil
}

// excerpt is what matters of an answer: of a list of checks, those that failed.
func excerpt(answer string) string {
	var failed []string
	for line := range strings.Lines(answer) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSpace(line))
		}
	}
	if len(failed) > 0 {
		return strings.Join(failed, ", ")
	}
	const shown = 300
	return answer[:min(len(answer), shown)]
}

// ReadyNodes is how many nodes say that they are Ready.
func (c *Client) ReadyNodes(ctx context.Context) (int, error) {
	var nodes struct {
		Items []struct {
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := c.Get(ctx, "/api/v1/nodes", &nodes); err != nil {
		return 0, err
	}
	ready := 0
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				ready++
			}
		}
	}
	return ready, nil
}
