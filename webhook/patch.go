package webhook

import (
	"maps"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/workload"
)

// patchFor makes the operations (RFC 6902) that give an object the records
// that were decided, and change nothing else. There are none when the object
// carries them already. They are made by hand: a diff of whole documents would
// cost more than all the rest of an admission.
func patchFor(object *workload.Object, sent, decided checksum.Records) []jsonpatch.Operation {
	metadata := "/metadata"
	for i := len(object.Kind.Template) - 1; i >= 0; i-- {
		metadata = "/" + admission.Escape(object.Kind.Template[i]) + metadata
	}
	var patch []jsonpatch.Operation
	was, is := sent.OnTemplate(), decided.OnTemplate()
	switch {
	case maps.Equal(was, is):
	case !object.Template.HasMetadata() && len(object.Template.Spec) == 0: // a custom resource may have no template
	case !object.Template.HasMetadata():
		patch = append(patch, jsonpatch.NewOperation("add", metadata, map[string]any{"annotations": is}))
	case object.Template.Metadata.Annotations == nil:
		patch = append(patch, jsonpatch.NewOperation("add", metadata+"/annotations", is))
	default:
		patch = admission.Annotate(patch, metadata+"/annotations", was, is)
	}

	was, is = sent.OnWorkload(), decided.OnWorkload()
	for key := range object.Annotations {
		if _, counts := was[key]; !counts && checksum.IsOursOnWorkload(key) {
			was[key] = "" // a baseline that cannot be read is no baseline, and goes
		}
	}
	switch {
	case maps.Equal(was, is):
	case object.Annotations == nil:
		patch = append(patch, jsonpatch.NewOperation("add", "/metadata/annotations", is))
	default:
		patch = admission.Annotate(patch, "/metadata/annotations", was, is)
	}
	return patch
}
