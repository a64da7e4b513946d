package oracle

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"
)

// seeded gives a seed, and says how to repeat it.
func seeded(t *testing.T) int64 {
	t.Helper()
	seed := time.Now().UnixNano()
	if text := os.Getenv("CONFIGSTAMP_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CONFIGSTAMP_SEED=%d", seed)
	return seed
}

// filler fills every field of a pod spec that there is, those that a later
// release adds too.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 3).MaxDepth(20).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		},
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(c.Int31n(1000)) },
		// Few names, so that sources coincide, and empty ones too.
		func(s *string, c randfill.Continue) {
			*s = []string{"", "a", "b", "c", "d.e", "f-g", "..data/a"}[c.Intn(7)]
		},
	)
}

func TestFilledPodSpecs(t *testing.T) {
	seed := seeded(t)
	fill, chance := filler(seed), rand.New(rand.NewSource(seed)) //nolint:gosec // no secret
	naming := 0
	for range 1000 {
		var spec corev1.PodSpec
		fill.Fill(&spec)
		oneSourceEach(&spec, chance.Intn)
		if compare(t, &spec) {
			naming++
		}
	}
	if naming < 250 {
		t.Errorf("only %d specs name anything: the filler is too sparse", naming)
	}
}

// Every field that holds a name in a PodSpec is filled alone, so that one that
// both sides find by way of another cannot hide.
func TestEachFieldAlone(t *testing.T) {
	var spec corev1.PodSpec
	named, places := 0, 0
	alone(reflect.ValueOf(&spec).Elem(), 0, func() {
		places++
		if compare(t, &spec) {
			named++
		}
	})
	t.Logf("%d of %d places name a source", named, places)
	// 4 in each of three lists of containers, 2 volumes and 2 projections, the
	// pull secrets, 9 volume drivers. More is a place that Kubernetes has added:
	// it is compared already, and belongs into the design's list of uses.
	if want := 3*4 + 2 + 2 + 1 + 9; named != want {
		t.Errorf("%d places name a source, want %d", named, want)
	}
}

// alone sets one text after another to "x", with what must stand around it,
// and calls with the rest empty.
func alone(v reflect.Value, depth int, call func()) {
	switch {
	case depth > 14:
	case v.Type() == reflect.TypeFor[resource.Quantity]():
	case v.Kind() == reflect.String:
		v.SetString("x")
		call()
		v.SetZero()
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		alone(v.Elem(), depth+1, call)
		v.SetZero()
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		alone(v.Index(0), depth+1, call)
		v.SetZero()
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				alone(v.Field(i), depth+1, call)
			}
		}
	}
}

// Real specs, of which in each round some are taken apart and put together
// with parts of others.
func TestMutatedRealPodSpecs(t *testing.T) {
	seed := seeded(t)
	chance := rand.New(rand.NewSource(seed)) //nolint:gosec // no secret
	real := realSpecs(t)
	for i := range real {
		if !compare(t, &real[i]) {
			t.Errorf("real spec %d names nothing", i)
		}
		oneSourceEach(&real[i], func(int) int { return 0 })
		compareRead(t, &real[i])
	}
	for range 4000 {
		spec, other := real[chance.Intn(len(real))].DeepCopy(), real[chance.Intn(len(real))].DeepCopy()
		for range 1 + chance.Intn(4) {
			mutate(spec, other, chance)
		}
		compare(t, spec)
	}
}

func mutate(spec, other *corev1.PodSpec, chance *rand.Rand) {
	switch chance.Intn(7) {
	case 0:
		spec.InitContainers = append(spec.InitContainers, other.Containers...)
	case 1:
		for _, c := range other.Containers {
			spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)})
		}
	case 2:
		spec.Containers, spec.InitContainers = other.InitContainers, spec.Containers
	case 3:
		spec.Volumes = append(spec.Volumes, other.Volumes...)
	case 4:
		spec.Containers = nil // every volume is unused
	case 5:
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: fmt.Sprint("pull-", chance.Intn(3))})
	case 6:
		if n := len(spec.Volumes); n > 0 {
			i := chance.Intn(n)
			spec.Volumes = append(spec.Volumes[:i], spec.Volumes[i+1:]...)
		}
	}
}

func realSpecs(t *testing.T) []corev1.PodSpec {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no specs: %v", err)
	}
	specs := make([]corev1.PodSpec, len(files))
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(raw, &specs[i]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return specs
}
