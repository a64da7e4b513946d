package main

import (
	"context"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/workload"
)

// metadataAlone has the API server send no more of an object than its metadata.
const metadataAlone = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// eventWriter writes an event.
type eventWriter = func(context.Context, *eventsv1.Event) error

// identify completes events about ConfigMaps and Secrets with metadata.uid before they are written, since
// kubectl describe selects events by it. If that cannot be read, the event is written without: kubectl get
// events shows it. The planner does not wait for these reads. core is a client of group "", version v1.
func identify(core rest.Interface, write eventWriter) eventWriter {
	resources := map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"}
	return func(ctx context.Context, event *eventsv1.Event) error {
		about := &event.Regarding
		if resource := resources[about.Kind]; resource != "" && about.UID == "" {
			body, err := core.Get().SetHeader("Accept", metadataAlone).Namespace(about.Namespace).Resource(resource).Name(about.Name).Do(ctx).Raw()
			if err == nil {
				if object, err := (&workload.Kind{}).DecodeMetadata(body); err == nil {
					about.UID = object.UID
				}
			}
		}
		return write(ctx, event)
	}
}
