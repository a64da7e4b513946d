package hostile

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/configstamp/configstamp/e2e/harness"
)

// port calls the webhooks past the API server, as any Pod can: connections without a
// word, bodies without an end, and reviews that nobody asked for.
func (r *raid) port() {
	to := pick(r, run.Product.Balancer.URL(), run.Product.Impact.URL())
	insecure := &tls.Config{InsecureSkipVerify: true} // whom it attacks is not its concern
	if r.IntN(5) == 0 {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: insecure, DisableKeepAlives: true}}
		request, err := http.NewRequestWithContext(r.ctx, http.MethodPost, to+pick(r, "", "pods", "impact")+pick(r, "", "?timeout=9999h"), bytes.NewReader(r.review()))
		if err != nil {
			panic(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if r.heard(err); err == nil {
			_ = response.Body.Close()
		}
		return
	}
	where, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	dialer := tls.Dialer{Config: insecure}
	connection, err := dialer.DialContext(r.ctx, "tcp", where.Host)
	if r.heard(err); err != nil {
		return
	}
	go func() { // or until the other side has had enough
		<-r.ctx.Done()
		_ = connection.Close()
	}()
	if r.IntN(10) == 0 {
		const size = 8 << 20
		_, _ = fmt.Fprintf(connection, "POST /%s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			pick(r, "", "pods", "impact"), size, strings.Repeat(" ", r.IntN(size)))
	}
}

// review is one that the API server has not sent, about a namespace that is not opted in.
func (r *raid) review() []byte {
	object := r.workload("Deployment", "invented", r.small(), fields{"configstamp.dev/pin": "true"})
	object["apiVersion"], object["kind"] = "apps/v1", "Deployment"
	object["metadata"] = fields{"name": "invented", "namespace": harness.OwnNamespace, "uid": fmt.Sprint(r.IntN(1000)), "labels": fields{harness.InjectLabel: "enabled"}}
	kind := fields{"group": "apps", "version": "v1", "kind": "Deployment"}
	body, err := json.Marshal(fields{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": fields{
		"uid": fmt.Sprint(r.IntN(1000)), "kind": kind, "requestKind": kind, "resource": fields{"group": "apps", "version": "v1", "resource": "deployments"},
		"operation": pick(r, "CREATE", "UPDATE", "DELETE", "CONNECT"), "namespace": pick(r, "default", "kube-system", r.other.space.Namespace), "name": "invented",
		"userInfo": fields{"username": "admin"}, "object": object, "oldObject": object,
	}})
	if err != nil {
		panic(err)
	}
	return body
}
