// Package snapshots has a real API server make, list and delete snapshots: without
// configstamp's processes, and without Pods.
package snapshots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/internal/archive"
	"github.com/configstamp/configstamp/internal/collect"
	"github.com/configstamp/configstamp/internal/snapshot"
	"github.com/configstamp/configstamp/internal/source"
)

var web = checksum.Source{Kind: checksum.ConfigMap, Name: "web"}

func TestSnapshotsOnARealAPIServer(t *testing.T) {
	if os.Getenv(harness.EnvEnabled) == "" {
		t.Skip("it starts a cluster: set " + harness.EnvEnabled)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	bare, err := harness.UpBare(ctx, t.TempDir(), "snapshots")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bare.Down(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", bare.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	people, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	key, err := checksum.NewKey(make([]byte, checksum.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ring := checksum.NewRing(key)
	store, err := source.NewStore(config, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	maker, err := archive.New(config, archive.Options{Store: store, Ring: func() *checksum.Ring { return ring }})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	collector, err := collect.New(config, collect.Options{
		Store: store, Archive: maker, Ring: func() *checksum.Ring { return ring }, Clock: clock.RealClock{},
		Bounds: snapshot.Bounds{Grace: 3 * time.Second}, Interval: time.Second,
		Tell: func(about *corev1.ObjectReference, why checksum.Reason, text string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, about.Kind+"/"+about.Name+" "+why.Event()+": "+text)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	background, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = store.Run(background) })
	running.Go(func() { collector.Run(background) })
	defer running.Wait()
	defer stop()

	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within 30 s: %s", what)
			}
		}
	}
	must(people.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}))
	maps := people.CoreV1().ConfigMaps("shop")
	hold := func(value string) (name string) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string]string{"a": value}, BinaryData: map[string][]byte{"b": {0xff}}}
		_, err := maps.Update(ctx, cm, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
		}
		must(nil, err)
		return ring.SnapshotName("shop", web, checksum.ContentOfConfigMap(cm))
	}
	there := func(name string) bool {
		cm, err := maps.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false
		}
		must(nil, err)
		of, _, ok := snapshot.Verify(ring, cm)
		return ok && of == web
	}
	eventually("the store is full", store.HasSynced)

	first := hold("1")
	must(nil, maker.Ensure(ctx, "shop", web, first))
	if !there(first) {
		t.Fatal("the snapshot is not there")
	}
	eventually("the watch has brought it", func() bool { _, known := store.Snapshot("shop", first); return known })
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{checksum.PinsAnnotation: fmt.Sprintf(`{"configmap/web":"%s startup"}`, first)}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	none := int32(0)
	must(people.AppsV1().Deployments("shop").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}, metav1.CreateOptions{}))

	second := hold("2")
	must(nil, maker.Ensure(ctx, "shop", web, second))
	if err := maker.Ensure(ctx, "shop", web, ring.SnapshotName("shop", web, &checksum.Content{})); !errors.Is(err, archive.ErrChanged) {
		t.Errorf("a snapshot of content that is not there: %v", err)
	}
	hold("3")
	eventually("what nothing names is deleted", func() bool { return !there(second) })
	time.Sleep(5 * time.Second)
	if !there(first) {
		t.Fatal("what the Deployment names is deleted")
	}

	// Somebody deletes it: lost, until the source holds that content again.
	must(nil, maps.Delete(ctx, first, metav1.DeleteOptions{}))
	eventually("people are told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) == 1
	})
	if !strings.HasPrefix(told[0], "Deployment/web SnapshotLost: snapshot "+first) {
		t.Errorf("told %v", told)
	}
	hold("1")
	eventually("it is made again", func() bool { return there(first) })

	must(people.CoreV1().ResourceQuotas("shop").Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("1")}},
	}, metav1.CreateOptions{}))
	eventually("the quota is reckoned", func() bool {
		quota, err := people.CoreV1().ResourceQuotas("shop").Get(ctx, "small", metav1.GetOptions{})
		return err == nil && len(quota.Status.Used) > 0
	})
	fourth := hold("4")
	if err := maker.Ensure(ctx, "shop", web, fourth); !errors.Is(err, archive.ErrQuota) {
		t.Errorf("a quota without room: %v", err)
	} else {
		t.Log(err)
	}
	t.Log(strings.Join(told, "\n"))
}
