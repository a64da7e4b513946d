package answer

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/seen"
)

// LostPause is a pause that somebody has ordered, and that somebody else has taken back.
type LostPause struct {
	// Namespace is "" of a Namespace itself, Object is kind/name.
	Namespace string `json:"namespace,omitempty"`
	Object    string `json:"object"`
	// By is who paused, At when (RFC 3339), Reason why.
	By     string `json:"by,omitempty"`
	At     string `json:"at"`
	Reason string `json:"reason,omitempty"`
	// Now is what configstamp.dev/pause says since. Writer is who wrote that, as far as
	// managedFields tell.
	Now    string      `json:"now"`
	Writer *seen.Write `json:"writer,omitempty"`
	// Next pauses again.
	Next string `json:"next"`

	words string
}

// LostPauses are those of some namespaces and workloads, in this order, that would still hold.
func LostPauses(f *seen.Fleet, now time.Time) (all []LostPause) {
	add := func(namespace, object string, annotations map[string]string, writer seen.Write) {
		lost := checksum.LostPauseIn(annotations)
		if !lost.LostAt(now) {
			return
		}
		one := LostPause{
			Namespace: namespace, Object: object, By: lost.By, At: lost.At, Reason: lost.Reason, Now: lost.Is,
			Next: "kubectl configstamp pause " + inNamespace(object, namespace), words: lost.Words(),
		}
		if writer.Manager != "" {
			one.Writer = &writer
		}
		all = append(all, one)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Namespaces)) {
		add("", "namespace/"+name, f.Namespaces[name].Annotations, f.Namespaces[name].Paused)
	}
	for _, w := range f.Workloads {
		add(w.Namespace, w.Text(), w.Object.Annotations, w.Paused)
	}
	return all
}

// Words say who paused, and who took that back.
func (l *LostPause) Words(now time.Time) string {
	is := checksum.PauseAnnotation + " is " + strings.TrimSpace(l.Now) + " now"
	if l.Writer != nil {
		is = l.Writer.Manager + " wrote " + checksum.PauseAnnotation + "=" + l.Now + " " + Ago(now, l.Writer.At) + " ago"
	}
	return "it was paused" + l.words + ", and somebody took that back: " + is
}
