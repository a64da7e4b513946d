package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/report/writer"
	"github.com/configstamp/configstamp/internal/rollout"
)

// writeReports has the leader write ConfigRollouts, unless --report is false.
func (o *controllerOptions) writeReports(p *process, c *controller.Controller) error {
	if !o.reports {
		return nil
	}
	reports, err := writer.New(p.config, p.served, writer.Options{
		Facts:   c.Facts,
		Sources: c.Sources,
		Serves: func(at rollout.SourceRef) bool {
			return o.mayServe(at.Namespace) && (at.Source.Kind != checksum.Secret || !o.ConfigMapsAlone())
		},
		Namespaces: o.Namespaces,
		Warn: func(text string) {
			why := reason.ReportRefused
			p.events.Eventf(&corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: o.namespace, Namespace: o.namespace}, nil,
				why.EventType(), why.Event(), "Report", "%s", text)
		},
		Clock:    clock.RealClock{},
		Registry: p.registry,
	})
	if err != nil {
		return err
	}
	c.Reports(reports.Changed)
	c.WhileLeading(reports.Run)
	return nil
}
