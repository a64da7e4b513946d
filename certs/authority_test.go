package certs

import (
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"
)

// Two replicas, each with its authority, and an API server's view of both: once trusted, no handshake may fail, through a replacement of the authority and the change of certificates after it.
func TestReplicasStayTrustedThroughARotation(t *testing.T) {
	t.Parallel()
	server := newServer(t, webhookConfiguration())
	_, ctx := ktesting.NewTestContext(t)
	const patience = 2 * time.Second
	var addresses []string
	for range 2 {
		injector := injectorOf(t, server, testOptions)
		injector.settleFor = patience
		source := injector.source()
		start(ctx, t, source)
		addresses = append(addresses, serve(t, source))
	}
	bundle := func() []byte { return currentWebhooks(server).Webhooks[0].ClientConfig.CABundle }
	trusted := func() bool {
		for _, address := range addresses {
			if _, err := handshake(address, bundle()); err != nil {
				return false
			}
		}
		return true
	}
	eventually(t, "both replicas are trusted", trusted)

	secret := storedSecret(server)
	old := secret.Data["ca.crt"]
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for caller := range 10 {
		address := addresses[caller%2]
		callers.Go(func() {
			time.Sleep(time.Duration(caller) * 70 * time.Millisecond)
			for {
				// A real API server reads the bundle a little late, which settleFor allows for.
				read := time.Now() // before it reads: it may be kept waiting between the two
				known := bundle()
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
	server.Put("secrets", damaged)
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
	good := Authority{RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}, Namespace: "n", Service: "s", Configuration: Configuration{Name: "w"}, SecretName: "a"}
	if _, err := FromAuthority(good); err != nil {
		t.Errorf("good options: %v", err)
	}
	for name, change := range map[string]func(*Authority){
		"no REST config":             func(o *Authority) { o.RESTConfig = nil },
		"a REST config that is none": func(o *Authority) { o.RESTConfig = &rest.Config{Host: "://"} },
		"no namespace":               func(o *Authority) { o.Namespace = "" },
		"no service":                 func(o *Authority) { o.Service = "" },
		"no webhook configuration":   func(o *Authority) { o.Configuration.Name = "" },
		"no Secret":                  func(o *Authority) { o.SecretName = "" },
	} {
		options := good
		change(&options)
		if _, err := FromAuthority(options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
