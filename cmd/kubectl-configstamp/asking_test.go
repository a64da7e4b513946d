package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// A person at a terminal sees within two seconds what is known without the webhook, and how
// far the questions are. It is taken away before the answer; a pipe gets the answer alone.
func TestStatus_WhileTheWebhookIsAsked(t *testing.T) {
	if usualPatience().slow > time.Second {
		t.Errorf("it begins to show after %s", usualPatience().slow)
	}
	t.Setenv("NO_COLOR", "1")
	for name, terminal := range map[string]bool{"terminal": true, "pipe": false} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), soon)
			defer stop()
			server, looked := incident(t), make(chan struct{})
			server.Dry = func(string, *unstructured.Unstructured) ([]string, error) {
				select {
				case <-looked:
				case <-ctx.Done():
				}
				return []string{inStep}, nil
			}
			out, errOut := &lines{}, &lines{wanted: "asking the webhook …", seen: make(chan struct{}, 1)}
			p := newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}, atThree)
			p.patience.slow = 50 * time.Millisecond
			p.isTerminal = func(any) bool { return terminal }
			root := rootCommand(p)
			root.SetArgs([]string{"status", "--kubeconfig", server.Kubeconfig(t, "shop")})
			ended := make(chan error, 1)
			go func() { ended <- root.ExecuteContext(ctx) }()
			if terminal {
				errOut.wait(ctx, t)
				for _, part := range []string{"What is known so far:", "configmap/payment-api-config in namespace shop", "deployment/failed", "statefulset/halted  18m    configstamp said earlier"} {
					if !strings.Contains(errOut.String(), part) {
						t.Errorf("it does not say %q but\n%s", part, errOut)
					}
				}
				if out.String() != "" {
					t.Errorf("before the answer it printed\n%s", out)
				}
			} else {
				time.Sleep(10 * p.patience.slow)
			}
			close(looked)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "3 done, 1 failed, 1 not served") || strings.Contains(out.String(), "asking") {
				t.Errorf("it printed\n%s", out)
			}
			switch shown := errOut.String(); {
			case !terminal && shown != "":
				t.Errorf("a pipe got\n%s", shown)
			case terminal && !strings.HasSuffix(shown, "A\x1b[J"):
				t.Errorf("it is not taken away:\n%q", shown)
			}
		})
	}
}
