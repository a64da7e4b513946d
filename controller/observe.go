package controller

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// podsAtOnce is how many pods are read with one request: about 1 MiB.
const podsAtOnce = 100

// pods implements api, page by page. Each page has a deadline of its own: a DaemonSet
// may have fifty.
func (a *restAPI) pods(ctx context.Context, namespace, selector string) ([]workload.Pod, error) {
	var all []workload.Pod
	next := ""
	for {
		page, more, err := a.pageOfPods(ctx, namespace, selector, next)
		if err != nil {
			return nil, fmt.Errorf("LIST pods in %s: %w", namespace, err)
		}
		all = append(all, page...)
		if next = more; next == "" {
			return all, nil
		}
	}
}

func (a *restAPI) pageOfPods(ctx context.Context, namespace, selector, from string) (pods []workload.Pod, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request := a.core.Get().Timeout(serverTimeout).Namespace(namespace).Resource("pods").
		Param("labelSelector", selector).Param("limit", strconv.Itoa(podsAtOnce))
	if from != "" {
		request = request.Param("continue", from)
	}
	body, err := bodyOf(request.Do(ctx))
	if err != nil {
		return nil, "", err
	}
	return workload.Pods(body)
}

// nodeReady implements api. Where it may not be known, a node is ready.
func (a *restAPI) nodeReady(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := bodyOf(a.core.Get().Timeout(serverTimeout).Resource("nodes").Name(name).Do(ctx))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil // as where namespaces are given: then none is discounted
	}
	if err != nil {
		return false, fmt.Errorf("GET node %s: %w", name, err)
	}
	return workload.NodeReady(body)
}

// metadataAlone has the API server send no more of an object than its metadata.
const metadataAlone = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// sourceUID implements api.
func (a *restAPI) sourceUID(ctx context.Context, at rollout.SourceRef) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if at.Source.Kind == checksum.SecretProviderClass {
		return "", nil // there is no right to read it
	}
	body, err := bodyOf(a.core.Get().SetHeader("Accept", metadataAlone).Timeout(serverTimeout).
		Namespace(at.Namespace).Resource(string(at.Source.Kind) + "s").Name(at.Source.Name).Do(ctx))
	if err != nil {
		return "", fmt.Errorf("GET the metadata of %s: %w", at.Source, err)
	}
	object, err := (&workload.Kind{}).DecodeMetadata(body)
	if err != nil {
		return "", err
	}
	return object.UID, nil
}
