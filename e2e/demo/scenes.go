package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// scene is one story.
type scene struct {
	title  string
	proves string
	play   func(context.Context, *stage) error
}

func scenes() []scene {
	return []scene{
		{"Opting in: one label on a namespace", "a namespace was opted in by a label", optIn},
		{"web-message and web-app: a running container never sees a new environment variable", "an edit of a ConfigMap, with a warning of what it restarts, rolled out the Deployment that uses it, once, and nothing else", webMessage},
		{"app-secrets and two-tier-app: the Secret with a typo", "a corrected Secret made the app Ready, without a manual restart", typo},
		{"payment-api-config: which deployments use this ConfigMap?", "one ConfigMap, four Deployments: the plugin named all of them and what an edit would do, and an edit did just that", payment},
		{"web-tls: a certificate that is rotated", "a rotated certificate is served, by an app that reads it at its start", certificate},
		{"Pulp: three Deployments share one settings Secret", "an operator-like set rolled together when its settings changed", pulp},
		{"shop-settings: one bad edit, four applications", "a bad edit stopped at one of four applications, whose old pods kept serving; once fixed, it reached all", badEdit},
		{"What it does not do by default: bring back old content", "without pins, rollout undo brought no old content back, and said so", undo},
		{"bank-settings: with pins, a bad edit at night", "the application that a bad edit broke went back to its former content by itself", night},
	}
}

func optIn(ctx context.Context, s *stage) error {
	if _, err := s.kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, "label", "namespace", namespace, "configstamp.dev/inject=enabled")
	return err
}

func webMessage(ctx context.Context, s *stage) error {
	if err := s.apply(ctx, "web.yaml"); err != nil {
		return err
	}
	if err := s.rolledOut(ctx, "web-app", "bystander"); err != nil {
		return err
	}
	if err := s.answers(ctx, "web-app", "hello world"); err != nil {
		return err
	}
	before, err := s.stamps(ctx, "web-app")
	if err != nil {
		return err
	}
	if err := s.expect(strings.HasPrefix(before, "configmap.configstamp.dev/web-message: v1:"), "web-app is stamped: %s", before); err != nil {
		return err
	}
	s.say("\n  At admission, the webhook stamped a keyed checksum of what the pod template references:\n    %s\n\n  Now the ConfigMap is edited. kubectl warns what that restarts; nothing else has to be done.", before)
	if err := s.edit(ctx, "configmap/web-message", "hello world", "hello KodeKloud", "this change rolls out deployment/web-app"); err != nil {
		return err
	}
	after := before
	if err := s.eventually(ctx, "web-app is stamped anew", func() (bool, error) {
		after, err = s.stamps(ctx, "web-app")
		return after != before, err
	}); err != nil {
		return err
	}
	s.say("  The controller sent an empty patch, so that the webhook stamped the workload again. Before and after:\n    %s\n    %s", before, after)
	if err := s.rolledOut(ctx, "web-app"); err != nil {
		return err
	}
	if err := s.answers(ctx, "web-app", "hello KodeKloud"); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "rollout", "history", "deployment/web-app"); err != nil {
		return err
	}
	if err := s.event(ctx, "deployment/web-app", "configmap/web-message changed: rolling out"); err != nil {
		return err
	}
	if err := s.rolled(ctx, 2, "web-app"); err != nil {
		return err
	}
	s.say("  One edit made one rollout, by the Deployment's own controller. bystander, which uses no configuration, did not restart.")
	return s.rolled(ctx, 1, "bystander")
}

func typo(ctx context.Context, s *stage) error {
	if err := s.apply(ctx, "two-tier.yaml"); err != nil {
		return err
	}
	s.say("\n  The Secret has no key mysql-host yet, so configstamp warned above: no pod can start without it. Now it is added.")
	host, err := s.quiet(ctx, "get", "service", "mysql", "-o", "jsonpath={.spec.clusterIP}")
	if err != nil {
		return err
	}
	if err := s.setSecret(ctx, "app-secrets", "mysql-host", host); err != nil {
		return err
	}
	if err := s.rolledOut(ctx, "mysql"); err != nil {
		return err
	}
	if err := s.eventually(ctx, "the app runs and is not ready", func() (bool, error) {
		state, err := s.quiet(ctx, "get", "pods", "-l", "app=two-tier-app", "-o", "jsonpath={.items[*].status.phase} {.items[*].status.containerStatuses[*].ready}")
		return strings.TrimSpace(state) == "Running false", err
	}); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "get", "pods", "-l", "app=two-tier-app"); err != nil {
		return err
	}
	if err := s.rolled(ctx, 1, "two-tier-app"); err != nil {
		return err
	}
	s.say("\n  It runs but is not ready: the password in the Secret is %q, a typo. (The key that came later caused no extra rollout.)\n  An administrator corrects the Secret.", "mnswroot")
	if err := s.setSecret(ctx, "app-secrets", "mysql-root-password", "mypassword"); err != nil {
		return err
	}
	if err := s.eventually(ctx, "two-tier-app rolls", func() (bool, error) {
		n, err := s.revisions(ctx, "two-tier-app")
		return n == 2, err
	}); err != nil {
		return err
	}
	if err := s.rolledOut(ctx, "two-tier-app"); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "get", "pods", "-l", "app=two-tier-app"); err != nil {
		return err
	}
	if err := s.event(ctx, "deployment/two-tier-app", "secret/app-secrets changed: rolling out"); err != nil {
		return err
	}
	return s.answers(ctx, "two-tier-app", "connected to "+host)
}

func certificate(ctx context.Context, s *stage) error {
	first, err := s.rotate(ctx)
	if err != nil {
		return err
	}
	if err := s.apply(ctx, "tls.yaml"); err != nil {
		return err
	}
	if err := s.rolledOut(ctx, "tls-app"); err != nil {
		return err
	}
	if err := s.answers(ctx, "tls-app", first); err != nil {
		return err
	}
	s.say("\n  The Secret is mounted, so the kubelet refreshes the files; but this app, like many, reads them only at its start. Now the certificate is rotated.")
	second, err := s.rotate(ctx)
	if err != nil {
		return err
	}
	if err := s.answers(ctx, "tls-app", second); err != nil {
		return err
	}
	return s.rolled(ctx, 2, "tls-app")
}

func pulp(ctx context.Context, s *stage) error {
	set := []string{"pulp-api", "pulp-content", "pulp-worker"}
	if err := s.apply(ctx, "pulp.yaml"); err != nil {
		return err
	}
	if err := s.rolledOut(ctx, set...); err != nil {
		return err
	}
	s.say("\n  \"I modified a secret but the new config is not replicated to pods\", says the operator's FAQ. With configstamp it is.")
	if err := s.setSecret(ctx, "pulp-server", "SETTING_CONTENT_ORIGIN", "https://mirror.example"); err != nil {
		return err
	}
	if err := s.allAnswer(ctx, set, "https://mirror.example"); err != nil {
		return err
	}
	return s.rolled(ctx, 2, set...)
}

func badEdit(ctx context.Context, s *stage) error {
	shop := []string{"cart", "checkout", "search", "stock"}
	if err := s.apply(ctx, "shop.yaml"); err != nil {
		return err
	}
	if err := s.rolledOut(ctx, shop...); err != nil {
		return err
	}
	s.say("\n  All four read their settings at their start, and exit if a setting is invalid. Now an edit makes the timeout invalid.")
	if err := s.edit(ctx, "configmap/shop-settings", "TIMEOUT: 30s", "TIMEOUT: half-a-minute", "this change rolls out deployment/cart, deployment/checkout and 2 more, one first"); err != nil {
		return err
	}
	if err := s.event(ctx, "deployment/cart", "the rollout has failed"); err != nil {
		return err
	}
	if err := s.event(ctx, "configmap/shop-settings", "the change stops"); err != nil {
		return err
	}
	if err := s.event(ctx, "deployment/stock", "this workload does not roll out"); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "get", "pods", "-l", "app in (cart,checkout,search,stock)"); err != nil {
		return err
	}
	if err := s.tells(ctx, []string{"configmap/shop-settings in namespace production: Halted", "0 of 4 done, 1 failed"}, "configstamp", "status"); err != nil {
		return err
	}
	if err := s.rolled(ctx, 2, "cart"); err != nil {
		return err
	}
	if err := s.rolled(ctx, 1, "checkout", "search", "stock"); err != nil {
		return err
	}
	if err := s.allAnswer(ctx, shop, "30s"); err != nil {
		return err
	}
	s.say("\n  One of four has new pods, which crash; its old pods still serve, because its own rolling update keeps them. The other three were not touched. Now the edit is fixed.")
	if err := s.edit(ctx, "configmap/shop-settings", "TIMEOUT: half-a-minute", "TIMEOUT: 45s"); err != nil {
		return err
	}
	if err := s.tells(ctx, []string{"4 of 4 workloads have it"}, "configstamp", "wait", "configmap/shop-settings"); err != nil {
		return err
	}
	if err := s.allAnswer(ctx, shop, "45s"); err != nil {
		return err
	}
	s.say("  One first, then two: each step waits until the one before is healthy.")
	return nil
}

func night(ctx context.Context, s *stage) error {
	bank := []string{"accounts", "loans", "transfers"}
	if _, err := s.kubectl(ctx, "annotate", "namespace", namespace, "configstamp.dev/pin=true", "configstamp.dev/on-failure=return"); err != nil {
		return err
	}
	time.Sleep(time.Second) // until both replicas know
	if err := s.apply(ctx, "bank.yaml"); err != nil {
		return err
	}
	if err := s.rolledOut(ctx, bank...); err != nil {
		return err
	}
	s.say("\n  New workloads in this namespace pin the content that they read. The next edit is made at night.")
	if err := s.edit(ctx, "configmap/bank-settings", "TIMEOUT: 30s", "TIMEOUT: half-a-minute"); err != nil {
		return err
	}
	for _, want := range []string{"the rollout has failed", "went back to its former content by itself, and is well"} {
		if err := s.event(ctx, "deployment/accounts", want); err != nil {
			return err
		}
	}
	if err := s.tells(ctx, []string{"configmap/bank-settings in namespace production: Halted", "it has its former content again"}, "configstamp", "status", "configmap/bank-settings"); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "get", "pods", "-l", "app in (accounts,loans,transfers)"); err != nil {
		return err
	}
	if err := s.allAnswer(ctx, bank, "30s"); err != nil {
		return err
	}
	if err := s.rolled(ctx, 1, "loans", "transfers"); err != nil {
		return err
	}
	s.say("\n  In the morning the edit is fixed.")
	if err := s.edit(ctx, "configmap/bank-settings", "TIMEOUT: half-a-minute", "TIMEOUT: 45s"); err != nil {
		return err
	}
	if err := s.tells(ctx, []string{"3 of 3 workloads have it"}, "configstamp", "wait", "configmap/bank-settings"); err != nil {
		return err
	}
	return s.allAnswer(ctx, bank, "45s")
}

func undo(ctx context.Context, s *stage) error {
	printed, err := s.kubectl(ctx, "rollout", "undo", "deployment/web-app")
	if err != nil {
		return err
	}
	if err := s.expect(strings.Contains(printed, "not versioned"), "the person at the keyboard is warned"); err != nil {
		return err
	}
	s.say("\n  The old template would start pods with the present content, so the stamps stay and nothing restarts. To undo the edit, put the old content back:")
	if err := s.rolled(ctx, 2, "web-app"); err != nil {
		return err
	}
	if err := s.edit(ctx, "configmap/web-message", "hello KodeKloud", "hello world"); err != nil {
		return err
	}
	return s.answers(ctx, "web-app", "hello world")
}

// allAnswer checks what each of several applications answers.
func (s *stage) allAnswer(ctx context.Context, names []string, want string) error {
	for _, name := range names {
		if err := s.answers(ctx, name, want); err != nil {
			return err
		}
	}
	return nil
}

// event shows and checks an event of something.
func (s *stage) event(ctx context.Context, about, want string) error {
	s.say("  $ kubectl events --for %s", about)
	return s.eventually(ctx, "there is an event: "+want, func() (bool, error) {
		printed, err := s.quiet(ctx, "events", "--for", about)
		for line := range strings.Lines(printed) {
			if strings.Contains(line, want) {
				s.say("    %s", strings.TrimSpace(line))
				return true, err
			}
		}
		return false, err
	})
}

// setSecret writes one key of a Secret.
func (s *stage) setSecret(ctx context.Context, name, key, value string) error {
	_, err := s.kubectl(ctx, "patch", "secret", name, "-p", fmt.Sprintf(`{"stringData":{%q:%q}}`, key, value))
	return err
}

// rotate puts a new certificate into Secret web-tls and returns its serial number.
func (s *stage) rotate(ctx context.Context) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "tls-app"},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	serial := fmt.Sprintf("serial %x", template.SerialNumber)
	s.say("  $ kubectl apply -f web-tls.yaml          # a new certificate, %s", serial)
	encode := func(kind string, bytes []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	manifest := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: web-tls}\ntype: kubernetes.io/tls\ndata:\n  tls.crt: %s\n  tls.key: %s\n",
		encode("CERTIFICATE", certificate), encode("PRIVATE KEY", private))
	_, err = s.pipe(ctx, bytes.NewReader([]byte(manifest)), nil, "apply", "--server-side", "-f", "-")
	return serial, err
}
