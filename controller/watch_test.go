package controller

import (
	"maps"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// What a workload says in its metadata alone counts at once: metadata raises no
// generation.
func TestWatch_WhatAWorkloadSaysIsNews(t *testing.T) {
	const domain = "reloader.stakater.com/"
	annotations := func(pairs ...string) map[string]any {
		says := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			says[pairs[i]] = pairs[i+1]
		}
		return map[string]any{"annotations": says}
	}
	owned := map[string]any{"ownerReferences": []any{map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "d", "controller": true}}}
	for about, test := range map[string]struct {
		was, is map[string]any
		news    bool
	}{
		"a dialect's annotation is added":         {annotations(), annotations(domain+"auto", "true"), true},
		"it is taken away":                        {annotations(domain+"auto", "true"), annotations(), true},
		"it names others":                         {annotations("configmap."+domain+"reload", "a"), annotations("configmap."+domain+"reload", "a,b"), true},
		"its expression is another":               {annotations("configmap."+domain+"reload", "a-.*"), annotations("configmap."+domain+"reload", "b-.*"), true},
		"it cannot be read any more":              {annotations("configmap."+domain+"reload", "a-.*"), annotations("configmap."+domain+"reload", "a-(.*"), true},
		"another dialect's extra is added":        {annotations("wave.pusher.com/update-on-config-change", "true"), annotations("wave.pusher.com/update-on-config-change", "true", "wave.pusher.com/extra-secrets", "s"), true},
		"somebody else rolls it from now on":      {annotations(), owned, true},
		"its expression is the same":              {annotations("configmap."+domain+"reload", "a-.*"), annotations("configmap."+domain+"reload", "a-.*"), false},
		"a dialect that does not count is nobody": {annotations(), annotations("keel.sh/policy", "all"), false},
	} {
		t.Run(about, func(t *testing.T) {
			c := newCluster(t)
			h := newHouse(t, c)
			h.options.Dialects = []checksum.Dialect{checksum.Reloader, checksum.Wave}
			h.options.Kinds = append(workload.Builtin(), workload.Known()...)
			d := c.deploy("d", "c")
			say := func(metadata map[string]any) {
				maps.Copy(c.objects[d]["metadata"].(map[string]any), metadata)
				c.annotate(d) // another version
			}
			say(test.was)
			h.see(t, d)
			for h.queue.Len() > 0 {
				h.next(t.Context())
			}
			h.index.Using("shop", configMap("a-1")) // an expression that has matched is the same still
			say(test.is)
			h.see(t, d)
			if news := h.queue.Len() > 0; news != test.news {
				t.Errorf("woken: %v, want %v", news, test.news)
			}
		})
	}
}
