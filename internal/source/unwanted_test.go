package source

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
)

// Requests that have given up leave reads that are sent all the same, and hold slots before those who still wait.
func TestReadsThatNobodyWaitsForAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharing[Record](10*time.Second, 6) // Own: ownPatience, ownParallel
		var sent atomic.Int64
		look := func(context.Context) (Record, error) {
			sent.Add(1)
			time.Sleep(time.Second)
			return Record{}, nil
		}
		for i := range 96 { // 16 re-admissions, 6 under way each, as together does it
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 1875*time.Millisecond) // within, timeoutSeconds 3
				defer cancel()
				_, _ = s.do(ctx, place{"shop", checksum.Source{Kind: checksum.ConfigMap, Name: fmt.Sprint(i)}}, look)
			}()
		}
		time.Sleep(1900 * time.Millisecond) // all have given up
		synctest.Wait()
		before := sent.Load()
		ctx, cancel := context.WithTimeout(t.Context(), 1875*time.Millisecond)
		defer cancel()
		_, err := s.do(ctx, place{"shop", web}, look)
		if err != nil {
			t.Errorf("one that asks alone gets no slot: %v", err)
		}
		time.Sleep(time.Minute)
		if n := sent.Load() - before; n > 8 {
			t.Errorf("%d reads are sent for one request; nobody waits for the others", n)
		}
	})
}

// What condense reads is what Kubernetes' own decoder reads, of messages that are joined (fields twice) too.
func TestRandomMessagesAreReadAsKubernetesReadsThem(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	text := func() string { return []string{"", "a", "b", "tls.crt", "\x00", "é"}[rnd.IntN(6)] }
	c := &condenser{clock: clock.RealClock{}}
	for i := range 20000 {
		var raw []byte
		secret := i%2 == 0
		for range 1 + rnd.IntN(3) {
			meta := metav1.ObjectMeta{Name: text(), Namespace: text(), ResourceVersion: text(), Annotations: map[string]string{"configstamp.dev/ignore-keys": text()}}
			var part []byte
			if secret {
				o := corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{}, Type: "x", StringData: map[string]string{"s": "t"}}
				for range rnd.IntN(4) {
					o.Data[text()] = []byte(text())
				}
				part, _ = o.Marshal()
			} else {
				o := corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{}, BinaryData: map[string][]byte{}}
				for range rnd.IntN(4) {
					o.Data[text()] = text()
				}
				for range rnd.IntN(3) {
					o.BinaryData[text()] = []byte(text())
				}
				part, _ = o.Marshal()
			}
			raw = append(raw, part...)
			raw = append(raw, [][]byte{nil, {0xf8, 0x01, 0x07}, {0xfa, 0x01, 0x01, 'x'}, {0xfb, 0x01, 0xfc, 0x01}, {0x12, 0x00}, {0x12, 0x03, 0x0a, 0x01, 'a'}, {0x12, 0x02, 0x12, 0x00}}[rnd.IntN(7)]...)
		}
		kind, want := "ConfigMap", (*checksum.Content)(nil)
		var err error
		var m metav1.ObjectMeta
		if secret {
			var o corev1.Secret
			err = o.Unmarshal(raw)
			kind, want, m = "Secret", checksum.ContentOfSecret(&o), o.ObjectMeta
		} else {
			var o corev1.ConfigMap
			err = o.Unmarshal(raw)
			want, m = checksum.ContentOfConfigMap(&o), o.ObjectMeta
		}
		got, err2 := c.condense(kind, raw)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%x: %v, %v", raw, err, err2)
		}
		if err != nil {
			continue
		}
		o := got.(*object)
		if !o.content.SameEntries(want) || o.name != m.Name || o.namespace != m.Namespace || o.resourceVersion != m.ResourceVersion {
			t.Fatalf("%s %x: %+v, want %+v", kind, raw, o.content.Entries, want.Entries)
		}
	}
}
