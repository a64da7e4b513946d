package lab

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Pages reads all Secrets in protobuf, 500 at a time: the least that a start with all
// of them can cost. It opens a connection for it.
func (l *Lab) Pages(ctx context.Context) (took time.Duration, err error) {
	begin, config := time.Now(), rest.CopyConfig(l.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.DisableCompression = true // else the API server compresses, which costs it more than all the rest
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("making a client: %w", err)
	}
	for token := ""; ; {
		page, err := client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{Limit: 500, Continue: token})
		if err != nil {
			return 0, fmt.Errorf("reading a page of Secrets: %w", err)
		}
		if token = page.Continue; token == "" {
			return time.Since(begin), nil
		}
	}
}
