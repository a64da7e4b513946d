package inspect

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// usualName is what configstamp's objects are called unless the chart is told otherwise.
const usualName = "configstamp"

// impactPort is the port of the Service by which the controllers are asked what an edit
// rolls out.
const impactPort = "impact"

// Checkup reads what doctor looks at: the fleet of a namespace ("" for all), and whatever
// the installation is. What goes wrong beside the fleet is noted among the Gaps.
// answered is Ask's.
func (c *Cluster) Checkup(ctx context.Context, settings *seen.Settings, namespace string, answered func(done, of int)) (*seen.Checkup, error) {
	up := &seen.Checkup{Namespace: namespace, Webhooks: c.webhooks(ctx, "mutatingwebhookconfigurations")}
	up.Name = cmp.Or(c.serviceOf(up.Webhooks.All), usualName)
	settings = c.within(settings, up.Webhooks.All)
	group, within := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		up.Fleet, err = c.Fleet(within, settings, Which{Namespace: namespace}, answered)
		return err
	})
	for _, read := range []func(){
		func() { up.Impact = c.webhooks(within, "validatingwebhookconfigurations") },
		func() { up.Endpoints = c.endpoints(within, up.Name) },
		func() { up.Lease = c.lease(within, up.Name+"-controller") },
		func() { up.Key = c.key(within, up.Name+"-key") },
		func() { up.Server = c.server(within) },
		func() { up.Certificates = c.certificates(within) },
		func() { up.Peers = c.peers(within) },
	} {
		group.Go(func() error { read(); return nil })
	}
	err := group.Wait()
	up.Gaps = c.Gaps()
	return up, err
}

// within are settings with the namespaces that are served alone, and those that never are.
// configstamp-settings leaves them out, because not everybody may know them; the webhook
// configuration has them.
func (c *Cluster) within(settings *seen.Settings, webhooks []seen.Webhook) *seen.Settings {
	found := *settings
	for i := range webhooks {
		w := &webhooks[i]
		if w.Name != "namespace.configstamp.dev" || w.Installation() != c.installation || w.NamespaceSelector == nil {
			continue
		}
		for _, one := range w.NamespaceSelector.MatchExpressions {
			switch {
			case one.Key != corev1.LabelMetadataName:
			case one.Operator == metav1.LabelSelectorOpIn:
				found.Namespaces = one.Values
			case one.Operator == metav1.LabelSelectorOpNotIn:
				found.Excluded = one.Values
			}
		}
	}
	return &found
}

// doubt notes a read that went wrong, and reports whether it did.
func (c *Cluster) doubt(what string, err error) bool {
	if err != nil {
		c.miss(what, apiText(err))
	}
	return err != nil
}

// all hands all objects of a query to do, and reports whether they could be read.
func (c *Cluster) all(ctx context.Context, q query, do func(object []byte)) (looked bool) {
	failed := c.doubt(q.String(), c.each(ctx, q, func(object []byte) error { do(object); return nil }))
	return !failed && !c.missed(q.String())
}

// missed reports whether something is among the gaps.
func (c *Cluster) missed(what string) bool {
	for _, gap := range c.Gaps() {
		if gap.What == what {
			return true
		}
	}
	return false
}

// single reads one object, nil when there is none, and reports whether it could be looked
// for.
func (c *Cluster) single(ctx context.Context, q query) (object []byte, looked bool) {
	object, err := c.one(ctx, q)
	return object, !c.doubt(q.String(), err) && !c.missed(q.String())
}

func (c *Cluster) webhooks(ctx context.Context, resource string) (all seen.Webhooks) {
	all.Looked = c.all(ctx, query{gvr: v1("admissionregistration.k8s.io", resource), unscoped: true}, func(raw []byte) {
		var read admissionregistrationv1.MutatingWebhookConfiguration
		if c.doubt(strings.TrimSuffix(resource, "s")+" "+metadataOf(raw).Name, unmarshal(raw, &read)) {
			return
		}
		for _, entry := range read.Webhooks {
			all.All = append(all.All, seen.Webhook{Configuration: read.Name, MutatingWebhook: entry})
		}
	})
	return all
}

// serviceOf is the name of the Service of our webhooks, "" where it is not known.
func (c *Cluster) serviceOf(webhooks []seen.Webhook) string {
	for i := range webhooks {
		if w := &webhooks[i]; w.Ours() && w.Installation() == c.installation {
			return w.ClientConfig.Service.Name
		}
	}
	return ""
}

func (c *Cluster) endpoints(ctx context.Context, service string) (found seen.Endpoints) {
	q := query{gvr: v1("discovery.k8s.io", "endpointslices"), namespace: c.installation, labels: "kubernetes.io/service-name=" + service}
	found.Looked = c.all(ctx, q, func(raw []byte) {
		var slice struct {
			Endpoints []struct {
				Conditions struct {
					Ready *bool `json:"ready"`
				} `json:"conditions"`
			} `json:"endpoints"`
			Ports []struct {
				Name string `json:"name"`
			} `json:"ports"`
		}
		if c.doubt(q.String(), unmarshal(raw, &slice)) {
			return
		}
		ready := 0
		for _, endpoint := range slice.Endpoints {
			if is := endpoint.Conditions.Ready; is == nil || *is { // as discovery/v1 has it
				ready++
			}
		}
		found.All += len(slice.Endpoints)
		found.Ready += ready
		for _, port := range slice.Ports {
			if port.Name == impactPort {
				found.Impact += ready
			}
		}
	})
	return found
}

// certificates are those of cert-manager, none where there is no cert-manager.
func (c *Cluster) certificates(ctx context.Context) (found []seen.Certificate) {
	q := query{gvr: v1("cert-manager.io", "certificates"), namespace: c.installation, labels: "app.kubernetes.io/name=configstamp"}
	c.all(ctx, q, func(raw []byte) {
		var read struct {
			Status struct {
				Ends       time.Time `json:"notAfter"`
				Conditions []struct {
					Type    string `json:"type"`
					Status  string `json:"status"`
					Message string `json:"message"`
				} `json:"conditions"`
			} `json:"status"`
		}
		if c.doubt(q.String(), unmarshal(raw, &read)) {
			return
		}
		certificate := seen.Certificate{Name: metadataOf(raw).Name, Ends: read.Status.Ends.UTC()}
		for _, condition := range read.Status.Conditions {
			if condition.Type == "Ready" && condition.Status != "True" {
				certificate.Fault = cmp.Or(strings.Join(strings.Fields(condition.Message), " "), "it is not ready")
			}
		}
		found = append(found, certificate)
	})
	return found
}

func (c *Cluster) lease(ctx context.Context, name string) (found seen.Lease) {
	q := query{gvr: v1("coordination.k8s.io", "leases"), namespace: c.installation, name: name}
	var raw []byte
	if raw, found.Looked = c.single(ctx, q); raw == nil {
		return found
	}
	var read struct {
		Spec struct {
			Holder  string    `json:"holderIdentity"`
			Renewed time.Time `json:"renewTime"`
		} `json:"spec"`
	}
	if c.doubt(q.String(), unmarshal(raw, &read)) {
		return seen.Lease{}
	}
	return seen.Lease{Looked: true, Exists: true, Holder: read.Spec.Holder, Renewed: read.Spec.Renewed.UTC()}
}

// key reads the metadata of the Secret of the digest keys.
func (c *Cluster) key(ctx context.Context, name string) seen.Source {
	secret := checksum.Source{Kind: checksum.Secret, Name: name}
	found, err := c.Source(ctx, c.installation, secret)
	if c.doubt("secrets "+name+" in namespace "+c.installation, err) {
		return seen.Source{Namespace: c.installation, Source: secret}
	}
	return *found
}

func (c *Cluster) server(ctx context.Context) (found seen.Server) {
	raw, err := c.client.Get().AbsPath("/version").Do(ctx).Raw()
	if apierrors.IsForbidden(err) {
		c.miss("the version of the API server", "forbidden")
		return found
	}
	var read struct {
		Major   string `json:"major"`
		Minor   string `json:"minor"`
		Version string `json:"gitVersion"`
	}
	if err == nil {
		err = unmarshal(raw, &read)
	}
	if c.doubt("the version of the API server", err) {
		return found
	}
	// Some clusters write "30+".
	found.Major, err = strconv.Atoi(strings.TrimRight(read.Major, "+"))
	if err == nil {
		found.Minor, err = strconv.Atoi(strings.TrimRight(read.Minor, "+"))
	}
	found.Looked, found.Text = !c.doubt("the version of the API server", err), read.Version
	return found
}

// peers looks for Deployments of other products that do what we do.
func (c *Cluster) peers(ctx context.Context) (found seen.Peers) {
	q := query{gvr: v1("apps", "deployments")}
	found.Looked = c.all(ctx, q, func(raw []byte) {
		if peer := peerOf(raw); peer != nil && peer.Namespace != c.installation {
			found.All = append(found.All, *peer)
		}
	})
	return found
}

// peerOf tells which other product a Deployment runs, nil is none. It is known by the image
// of a container (stakater/reloader, wave-k8s/wave, a mirror of one), or by the label that
// its chart gives it.
func peerOf(raw []byte) *seen.Peer {
	var read struct {
		Spec struct {
			Replicas *int32 `json:"replicas"`
			Template struct {
				Spec struct {
					Containers []struct {
						Image string   `json:"image"`
						Args  []string `json:"args"`
					} `json:"containers"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if unmarshal(raw, &read) != nil {
		return nil
	}
	meta := metadataOf(raw)
	peer := seen.Peer{Namespace: meta.Namespace, Name: meta.Name, Replicas: 1}
	if read.Spec.Replicas != nil {
		peer.Replicas = *read.Spec.Replicas
	}
	labels := []string{meta.Labels["app.kubernetes.io/name"], meta.Labels["app"]}
	for _, container := range read.Spec.Template.Spec.Containers {
		labels = append(labels, imageName(container.Image))
		for _, arg := range container.Args {
			if name, value, _ := strings.Cut(arg, "="); name == "--auto-reload-all" && value != "false" {
				peer.All = true
			}
		}
	}
	for _, label := range labels {
		switch label {
		case "reloader", "reloader-reloader", "stakater-reloader":
			peer.Product = "Reloader"
		case "wave", "wave-controller":
			peer.Product = "wave"
		}
	}
	if peer.Product == "" {
		return nil
	}
	return &peer
}

// imageName is the last part of an image's name: reloader of ghcr.io/stakater/reloader:v1.
func imageName(image string) string {
	image, _, _ = strings.Cut(image[strings.LastIndex(image, "/")+1:], "@")
	image, _, _ = strings.Cut(image, ":")
	return image
}
