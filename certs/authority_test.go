package certs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"
)

// secretsAPI gives a fake clientset's Secrets an HTTP front, as far as cert-manager's authority needs
// one: list, watch, create and update. It knows no versions, so it refuses no conflicting update.
func secretsAPI(t *testing.T, client *fake.Clientset) *rest.Config {
	answer := func(w http.ResponseWriter, obj any, err error) {
		w.Header().Set("Content-Type", "application/json")
		if status := apierrors.APIStatus(nil); err != nil {
			status = err.(apierrors.APIStatus) // the fake gives no other errors
			w.WriteHeader(int(status.Status().Code))
			obj = status.Status()
		}
		_ = json.NewEncoder(w).Encode(obj)
	}
	secrets := client.CoreV1().Secrets("configstamp")
	mux := http.NewServeMux()
	const path = "/api/v1/namespaces/configstamp/secrets"
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("fieldSelector") != "metadata.name="+DefaultSecretName || query.Get("sendInitialEvents") != "" {
			answer(w, nil, apierrors.NewBadRequest("not here"))
			return
		}
		if query.Get("watch") == "" {
			list, err := secrets.List(r.Context(), metav1.ListOptions{})
			list.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}
			list.ResourceVersion = "1"
			answer(w, list, err)
			return
		}
		events, err := secrets.Watch(r.Context(), metav1.ListOptions{})
		if err != nil {
			answer(w, nil, err)
			return
		}
		defer events.Stop()
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-events.ResultChan():
				secret := event.Object.(*corev1.Secret)
				secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
				_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: string(event.Type), Object: runtime.RawExtension{Object: secret}})
				w.(http.Flusher).Flush()
			}
		}
	})
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var secret corev1.Secret
		_ = json.NewDecoder(r.Body).Decode(&secret)
		created, err := secrets.Create(r.Context(), &secret, metav1.CreateOptions{})
		answer(w, created, err)
	})
	mux.HandleFunc("PUT "+path+"/"+DefaultSecretName, func(w http.ResponseWriter, r *http.Request) {
		var secret corev1.Secret
		_ = json.NewDecoder(r.Body).Decode(&secret)
		updated, err := secrets.Update(r.Context(), &secret, metav1.UpdateOptions{})
		answer(w, updated, err)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// Two replicas, with cert-manager's real authority in each, and an API server's view of both: once
// trusted, no handshake may fail, through a replacement of the authority and the change of certificates after it.
func TestReplicasStayTrustedThroughARotation(t *testing.T) {
	t.Parallel()
	client := newClient(webhookConfiguration())
	options := testOptions
	options.RESTConfig = secretsAPI(t, client)
	_, ctx := ktesting.NewTestContext(t)
	const patience = 2 * time.Second
	var addresses []string
	for range 2 {
		injector := newInjector(client, options)
		injector.settleFor = patience
		source := options.source(injector)
		start(ctx, t, source)
		addresses = append(addresses, serve(t, source))
	}
	bundle := func() []byte { return currentWebhooks(t, client).Webhooks[0].ClientConfig.CABundle }
	trusted := func() bool {
		for _, address := range addresses {
			if _, err := handshake(address, bundle()); err != nil {
				return false
			}
		}
		return true
	}
	eventually(t, "both replicas are trusted", trusted)

	secret, err := client.CoreV1().Secrets("configstamp").Get(t.Context(), DefaultSecretName, metav1.GetOptions{})
	fatal(t, err)
	old := secret.Data["ca.crt"]
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for caller := range 10 {
		address := addresses[caller%2]
		callers.Go(func() {
			time.Sleep(time.Duration(caller) * 70 * time.Millisecond)
			for {
				// A real API server reads the bundle a little late, which settleFor allows for.
				known, read := bundle(), time.Now()
				time.Sleep(700 * time.Millisecond)
				if _, err := handshake(address, known); err != nil && time.Since(read) < patience {
					t.Errorf("an admission would have failed: %v", err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	damaged := secret.DeepCopy()
	damaged.Data["ca.crt"] = []byte("damaged") // so the authority makes a new one
	_, err = client.CoreV1().Secrets("configstamp").Update(t.Context(), damaged, metav1.UpdateOptions{})
	fatal(t, err)
	eventually(t, "both replicas serve certificates of the new authority", func() bool {
		for _, address := range addresses {
			if _, err := handshake(address, old); err == nil {
				return false
			}
		}
		return true
	})
	close(stop)
	callers.Wait()
}

func TestFromAuthorityRefusesWhatCannotWork(t *testing.T) {
	good := Authority{RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}, Namespace: "n", Service: "s", WebhookConfiguration: "w"}
	if _, err := FromAuthority(good); err != nil {
		t.Errorf("good options: %v", err)
	}
	for name, change := range map[string]func(*Authority){
		"no REST config":                   func(o *Authority) { o.RESTConfig = nil },
		"a REST config that is none":       func(o *Authority) { o.RESTConfig = &rest.Config{Host: "://"} },
		"no namespace":                     func(o *Authority) { o.Namespace = "" },
		"no service":                       func(o *Authority) { o.Service = "" },
		"no webhook configuration":         func(o *Authority) { o.WebhookConfiguration = "" },
		"negative overlap":                 func(o *Authority) { o.Overlap = -1 },
		"certificate outlives its maker":   func(o *Authority) { o.CADuration, o.LeafDuration = time.Hour, time.Hour },
		"default certificate outlives its": func(o *Authority) { o.CADuration = time.Hour },
	} {
		options := good
		change(&options)
		if _, err := FromAuthority(options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
